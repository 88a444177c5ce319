"""Self-play: the λ-returns, the games, and their independence from the workers."""

import numpy as np
import pytest
from oracles.plain_rules import plain_plays, plain_result
from oracles.positions import to_sides

from bgrl.data import open_generation, read_positions
from bgrl.encoding import get_encoder
from bgrl.errors import BgrlError
from bgrl.files import shipped
from bgrl.game import BACKGAMMON, HYPERGAMMON, NACKGAMMON
from bgrl.game.dice import Dice
from bgrl.game.outcomes import clamp, equity
from bgrl.nets import FastNet, Net
from bgrl.search import Bearoff, Searcher
from bgrl.selfplay import generate
from bgrl.selfplay.returns import returns_into, returns_without_luck


def make(variant=BACKGAMMON, seed=1) -> FastNet:
    return FastNet.from_net(Net(get_encoder("tesauro198"), (16,), variant).reset(seed))


def rows(generation):
    shards = [read_positions(shard) for shard in generation.shards]
    columns = ("boards", "targets", "outcomes", "games", "plies")
    return [np.concatenate([getattr(shard, name) for shard in shards]) for name in columns]


def returns(wins, lam, level=1):
    values = np.zeros((len(wins), 5), np.float32)
    values[:, 0] = wins
    targets = np.zeros((len(wins), 5), np.float32)
    returns_into(values, level, np.float32(lam), targets, 0, len(wins))
    return targets


@pytest.mark.parametrize(
    ("lam", "expected"), [(0.7, [0.802, 0.090, 1.0]), (0, [0.55, 0.30, 1.0]), (1, [1, 0, 1])]
)
def test_t01_t02_returns_across_the_changing_sides(lam, expected):
    np.testing.assert_allclose(returns([0.60, 0.45, 0.70], lam)[:, 0], expected, atol=1e-6)


def test_returns_of_a_gammon():
    np.testing.assert_allclose(
        returns([0.5, 0.5, 0.5], 1, level=2), [[1, 1, 0, 0, 0], [0, 0, 0, 1, 0], [1, 1, 0, 0, 0]]
    )


@pytest.fixture(scope="module")
def games(tmp_path_factory):
    folder = tmp_path_factory.mktemp("selfplay") / "gen-0001"
    return generate(make(), folder, seed=5, games=60, lam=0.7, workers=0, games_per_shard=25)


def test_games_are_greedy_legal_and_dealt_from_seed_and_number(games):
    """Replayed by the plain rules: every play is legal and, by the net, as good as any."""
    net = make()
    boards, _, outcomes, numbers, plies = rows(games)
    for game in (0, 31, 59):
        mine = np.flatnonzero(numbers == game)
        assert plies[mine].tolist() == list(range(len(mine)))
        dice = Dice(5, game)
        roll = dice.opening_roll()
        sides = to_sides(BACKGAMMON.start_board())
        for k, row in enumerate(mine):
            assert to_sides(boards[row]) == sides
            finals = plain_plays(sides, *roll)[1] or {sides}
            faced = [(theirs, own) for own, theirs in finals]
            over = [plain_result(final) for final in finals]
            if k == len(mine) - 1:
                assert max(over) == outcomes[row] > 0
                break
            values = net.evaluate(np.array(faced, np.int8))
            chosen = to_sides(boards[mine[k + 1]])
            best = min(2 * p[0] - 1 + p[1] - p[3] + p[2] - p[4] for p in values)
            p = values[faced.index(chosen)]
            assert 2 * p[0] - 1 + p[1] - p[3] + p[2] - p[4] <= best + 1e-5
            sides, roll = chosen, dice.roll()


def test_outcomes_alternate_and_bound_the_targets(games):
    _, targets, outcomes, numbers, plies = rows(games)
    for game in range(60):
        mine = outcomes[numbers == game].astype(int)
        assert (mine[1:] == -mine[:-1]).all()
        assert mine[-1] > 0
    last = plies == np.array([plies[numbers == game].max() for game in numbers])
    expected = np.stack([outcomes >= k for k in (1, 2, 3)] + [outcomes < -9] * 2, 1)
    np.testing.assert_array_equal(targets[last], expected[last])


def test_one_worker_and_two_play_the_same_games(games, tmp_path):
    def columns(folder, workers):
        return rows(
            generate(make(), folder, seed=5, games=60, lam=0.7, workers=workers, games_per_shard=25)
        )

    for a, b, c in zip(
        rows(games), columns(tmp_path / "1", 1), columns(tmp_path / "2", 2), strict=True
    ):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)


def test_numbers_continue_where_the_last_generation_ended(games, tmp_path):
    later = generate(make(), tmp_path / "g", seed=5, games=20, first_game=40, workers=0)
    boards, _, _, numbers, _ = rows(games)
    boards2, _, _, numbers2, _ = rows(later)
    assert sorted(set(numbers2.tolist())) == list(range(40, 60))
    np.testing.assert_array_equal(boards[numbers >= 40], boards2)
    other = generate(make(), tmp_path / "other", seed=6, games=20, first_game=40, workers=0)
    assert not np.array_equal(rows(other)[0], boards2)


def test_an_interrupted_generation_keeps_its_shards(games, tmp_path):
    whole = generate(make(), tmp_path / "g", seed=5, games=60, workers=0, games_per_shard=25)
    kept = whole.shards[0].path
    before = kept.stat().st_mtime_ns
    (tmp_path / "g" / "manifest.json").unlink()
    whole.shards[1].path.write_bytes(b"PAR1 cut short")
    whole.shards[2].path.unlink()
    again = generate(make(), tmp_path / "g", seed=5, games=60, workers=0, games_per_shard=25)
    assert kept.stat().st_mtime_ns == before
    np.testing.assert_array_equal(rows(again)[0], rows(games)[0])


def test_shards_of_another_net_are_played_again(tmp_path):
    generate(make(), tmp_path / "g", seed=5, games=20, workers=0)
    (tmp_path / "g" / "manifest.json").unlink()
    other = make(seed=2)
    again = generate(other, tmp_path / "g", seed=5, games=20, workers=0)
    assert {shard.meta.net for shard in again.shards} == {other.hash}


def numbers(generation):
    return sorted(set(rows(generation)[3].tolist()))


def unpublished(folder, **settings):
    """Shards of an interrupted call."""
    made = generate(make(), folder, seed=1, workers=0, games_per_shard=2, **settings)
    (folder / "manifest.json").unlink()
    return made


def test_shards_of_other_games_are_played_again(tmp_path):
    unpublished(tmp_path, games=4)
    settings = {"games": 4, "first_game": 100, "games_per_shard": 2, "workers": 0}
    again = generate(make(), tmp_path, seed=1, **settings)
    assert numbers(again) == [100, 101, 102, 103]
    assert numbers(open_generation(tmp_path)) == [100, 101, 102, 103]


def test_shards_of_another_size_are_played_again(tmp_path):
    unpublished(tmp_path, games=4)
    again = generate(make(), tmp_path, seed=1, games=4, games_per_shard=3, workers=0)
    assert numbers(again) == [0, 1, 2, 3]
    assert [shard.games for shard in again.shards] == [3, 1]


def test_shards_left_by_a_call_for_more_games_are_not_published(tmp_path, caplog):
    unpublished(tmp_path, games=6)
    fewer = generate(make(), tmp_path, seed=1, games=2, games_per_shard=2, workers=0)
    assert numbers(fewer) == numbers(open_generation(tmp_path)) == [0, 1]
    assert "part-00002.parquet: not of this generation" in caplog.text
    assert generate(make(), tmp_path, seed=1, games=2, workers=0).games == 2


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"games": 2}, "4 games from 0, not 2 from 0"),
        ({"games": 6}, "4 games from 0, not 6 from 0"),
        ({"first_game": 1}, "4 games from 0, not 4 from 1"),
        ({"seed": 2}, "its seed is 1, not 2"),
        ({"lam": 0.5}, r"its lam is 0\.7, not 0\.5"),
        ({"generation": 1}, "its generation is 0, not 1"),
        ({"scatter": 0.5}, r"its scatter is 0\.0, not 0\.5"),
    ],
)
def test_a_finished_generation_of_other_games_is_refused(other, message, tmp_path):
    asked = {"seed": 1, "games": 4, "workers": 0, "games_per_shard": 2}
    made = generate(make(), tmp_path, **asked)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(BgrlError, match=f"holds other self-play: {message}"):
        generate(make(), tmp_path, **asked | other)
    with pytest.raises(BgrlError, match="its net is "):
        generate(make(seed=2), tmp_path, **asked)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert generate(make(), tmp_path, **asked).shards == made.shards


def test_a_generation_that_lacks_games_is_not_published(tmp_path, monkeypatch):
    monkeypatch.setattr("bgrl.selfplay.workers._results", lambda *_: iter(()))
    with pytest.raises(BgrlError, match=r"shards \[0, 1\] failed 3 times"):
        generate(make(), tmp_path, seed=1, games=4, games_per_shard=2, workers=0)
    assert not list(tmp_path.iterdir())


def test_t11_a_game_given_up_has_no_label(tmp_path):
    generation = generate(make(), tmp_path / "g", seed=5, games=60, workers=0, max_plies=90)
    _, _, _, numbers, plies = rows(generation)
    assert generation.truncated_games > 0
    assert len(set(numbers.tolist())) == 60 - generation.truncated_games == generation.games
    assert plies.max() < 90
    assert open_generation(tmp_path / "g").truncated_games == generation.truncated_games
    again = generate(make(), tmp_path / "g", seed=5, games=60, workers=0, max_plies=90)
    assert again.truncated_games == generation.truncated_games


@pytest.mark.parametrize("variant", [NACKGAMMON, HYPERGAMMON])
def test_variants_start_where_they_should(variant, tmp_path):
    generation = generate(make(variant), tmp_path / "g", seed=1, games=10, workers=0)
    boards, _, outcomes, _, plies = rows(generation)
    np.testing.assert_array_equal(boards[plies == 0], np.repeat(variant.start_board()[None], 10, 0))
    assert (boards.sum(2) == variant.checkers).all()
    assert set(np.abs(outcomes).tolist()) <= {1, 2, 3}
    assert generation.shards[0].meta.variant == variant.name


def test_t20_both_sides_move_alike(games):
    """The pips that a turn takes off are the same for the side that started and the other."""
    boards, _, _, numbers, plies = rows(games)
    same = (numbers[1:] == numbers[:-1]).nonzero()[0]
    pips = boards.astype(int) @ np.arange(26)
    moved = pips[same, 0] - pips[same + 1, 1]
    first, second = (moved[plies[same] % 2 == k] for k in (0, 1))
    error = np.hypot(first.std() / len(first) ** 0.5, second.std() / len(second) ** 0.5)
    assert abs(first.mean() - second.mean()) < 4 * error
    assert 6 < moved.mean() < 8.2


def flipped(p):
    return np.stack([1 - p[:, 0], p[:, 3], p[:, 4], p[:, 1], p[:, 2]], axis=1)


def test_without_luck_and_lookahead_a_return_is_the_mean_over_all_rolls(games, tmp_path):
    net = make()
    exact = generate(net, tmp_path / "g", seed=5, games=9, lam=0, exact=True, workers=0)
    boards, targets, outcomes, _, plies = rows(exact)
    for found, expected in zip((boards, outcomes, plies), (0, 2, 4), strict=True):
        np.testing.assert_array_equal(found, rows(games)[expected][: len(boards)])
    for board, target in zip(boards[::97], targets[::97], strict=True):
        mean = np.zeros(5)
        for high in range(1, 7):
            for low in range(1, high + 1):
                _, equities, theirs = net.plays(board, high, low)
                faced = theirs[np.argmax(equities)] if len(equities) else net.evaluate(board[::-1])
                mean += (1 if high == low else 2) / 36 * flipped(faced[None])[0]
        np.testing.assert_allclose(target, mean, atol=2e-5)


@pytest.mark.parametrize("lam", [0.0, 0.6, 1.0])
def test_returns_without_luck_are_returns_less_the_luck_of_each_roll(games, lam):
    """Added up forwards from the λ-returns, game by game."""
    net = make()
    boards, _, outcomes, numbers, _ = rows(games)
    found = returns_without_luck(net, boards, numbers, lam)
    values = net.evaluate(boards)
    means = Searcher(net, 1).evaluate(boards)
    for game in range(4):
        mine = np.flatnonzero(numbers == game)
        lost = np.array([[0, 0, 0, abs(outcomes[mine[-1]]) > 1, abs(outcomes[mine[-1]]) > 2]])
        after = np.concatenate([values[mine[1:]], lost])
        luck = flipped(after) - means[mine]
        plain = np.zeros((len(mine), 5), np.float32)
        level = int(1 + lost.sum())
        returns_into(values[mine], level, np.float32(lam), plain, 0, len(mine))
        for t in range(len(mine)):
            expected = plain[t].astype(float)
            for k in range(t, len(mine)):
                step = (
                    luck[k] if (k - t) % 2 == 0 else flipped(luck[k : k + 1])[0] - [1, 0, 0, 0, 0]
                )
                expected -= lam ** (k - t) * step
            expected = np.float32(expected)[None]
            clamp(expected, boards[mine[t]][None])
            np.testing.assert_allclose(found[mine[t]], expected[0], atol=2e-5)


def test_taking_off_the_luck_keeps_the_mean_and_little_of_the_variance(tmp_path):
    net = FastNet.load(shipped("checkpoints") / "hard")
    boards, _, outcomes, numbers, plies = rows(
        generate(net, tmp_path / "g", seed=5, games=300, workers=0)
    )
    found = returns_without_luck(net, boards, numbers, 1.0)[plies == 2]
    points = 2 * found[:, 0] - 1 + found[:, 1] + found[:, 2] - found[:, 3] - found[:, 4]
    luck = outcomes[plies == 2] - points
    assert abs(luck.mean()) < 3.5 * luck.std() / len(luck) ** 0.5
    assert points.var() < luck.var() / 10


def test_a_pruner_changes_returns_by_little(tmp_path):
    hard = shipped("checkpoints") / "hard"
    net, small = FastNet.load(hard), FastNet.load(hard / "small")
    made = [
        generate(
            net, tmp_path / name, seed=5, games=20, lam=0.8, exact=True, pruner=pruner, workers=0
        )
        for name, pruner in (("all", None), ("pruned", small))
    ]
    assert [part.shards[0].meta.pruner for part in made] == [None, small.hash]
    (boards, targets, *_), (same, found, *_) = (rows(part) for part in made)
    np.testing.assert_array_equal(boards, same)
    assert (found != targets).any()
    off = equity(found) - equity(targets)
    assert np.sqrt(np.mean(off**2)) < 0.01


def test_bear_offs_have_their_exact_values(games, tmp_path):
    db = Bearoff.open(tmp_path / "bearoff")
    net = make()
    boards, _, _, numbers, _ = rows(games)
    found = returns_without_luck(net, boards, numbers, 0.9, db)
    known = db.evaluate(boards)
    covered = ~np.isnan(known[:, 0])
    assert covered.sum() > 20
    np.testing.assert_array_equal(found[covered], known[covered])


def test_scattered_games_begin_at_random_and_go_on_as_the_net_plays(games, tmp_path):
    net = make()
    scattered = generate(
        net, tmp_path / "g", seed=5, games=60, lam=0.7, scatter=0.5, workers=0, games_per_shard=25
    )
    found, plain = (dict(by_game(made)) for made in (scattered, games))
    first_plies = [mine[4][0] for mine in found.values()]
    same = [number for number, mine in found.items() if mine[4][0] == 0]
    assert 0.3 < len(same) / 60 < 0.7
    assert set(first_plies) <= set(range(13))
    assert max(first_plies) > 8
    for number in same:
        for mine, theirs in zip(found[number], plain[number], strict=True):
            np.testing.assert_array_equal(mine, theirs)
    for number in sorted(set(found) - set(same))[:5]:
        boards, targets, outcomes, _, plies = found[number]
        np.testing.assert_array_equal(plies, plies[0] + np.arange(len(plies)))
        # Its returns are those of the positions kept alone.
        level = abs(int(outcomes[-1]))
        expected = np.zeros_like(targets)
        returns_into(net.evaluate(boards), level, np.float32(0.7), expected, 0, len(boards))
        np.testing.assert_allclose(targets, expected, atol=2e-5)


def test_a_game_that_ends_within_its_random_plies_is_given_up(tmp_path):
    asked = {"seed": 1, "games": 2000, "scatter": 1.0, "workers": 0}
    made = generate(make(HYPERGAMMON), tmp_path, **asked)
    assert made.truncated_games > 0
    assert made.games == 2000 - made.truncated_games == len(numbers(made))
    assert generate(make(HYPERGAMMON), tmp_path, **asked).shards == made.shards


def by_game(generation):
    columns = rows(generation)
    for number in np.unique(columns[3]):
        yield int(number), [column[columns[3] == number] for column in columns]


@pytest.mark.parametrize(
    "wrong",
    [
        {"games": 0},
        {"lam": 1.5},
        {"scatter": -0.1},
        {"max_plies": 0},
        {"workers": -1},
        {"first_game": -1},
    ],
)
def test_settings_out_of_range(tmp_path, wrong):
    with pytest.raises(BgrlError, match="self-play needs"):
        generate(make(), tmp_path / "g", seed=1, **({"games": 1, "workers": 0} | wrong))
    assert not (tmp_path / "g").exists()
