// BGRL_BUNDLE=/path/to/bundle swift test

import Foundation
import XCTest

@testable import BgrlNet

private struct Golden: Decodable {
    struct Case: Decodable {
        let board: [[Int]]
        let inputs: [Float]
        let probabilities: [Float]
        let equity: Float
    }
    let net: String
    let cases: [Case]
}

private struct Levels: Decodable {
    struct Level: Decodable { let net: String }
    let levels: [Level]
}

final class GoldenTests: XCTestCase {
    private func bundle() throws -> URL {
        guard let path = ProcessInfo.processInfo.environment["BGRL_BUNDLE"] else {
            throw XCTSkip("BGRL_BUNDLE names no bundle")
        }
        return URL(fileURLWithPath: path)
    }

    func testGoldenVectors() throws {
        let folder = try bundle()
        let levels = try JSONDecoder().decode(
            Levels.self, from: Data(contentsOf: folder.appendingPathComponent("levels.json")))
        for name in Set(levels.levels.map(\.net)) {
            let golden = try JSONDecoder().decode(
                Golden.self, from: Data(contentsOf: folder.appendingPathComponent("\(name).golden.json")))
            let net = try FlatNet(data: Data(contentsOf: folder.appendingPathComponent("\(name).bgnet")))
            XCTAssertEqual(net.hash, golden.net)
            for one in golden.cases {
                let board = one.board[0] + one.board[1]
                XCTAssertEqual(net.encode(board), one.inputs)
                let p = net.evaluate(board)
                for (ours, expected) in zip(p, one.probabilities) {
                    XCTAssertEqual(ours, expected, accuracy: 1e-5)
                }
                XCTAssertEqual(net.equity(p), one.equity, accuracy: 1e-4)
            }
        }
    }

    func testDamagedFilesAreRefused() throws {
        let folder = try bundle()
        let levels = try JSONDecoder().decode(
            Levels.self, from: Data(contentsOf: folder.appendingPathComponent("levels.json")))
        let whole = try Data(contentsOf: folder.appendingPathComponent("\(levels.levels[0].net).bgnet"))
        XCTAssertThrowsError(try FlatNet(data: whole.dropLast(7)))
        var altered = whole
        altered[altered.count - 40] ^= 1
        XCTAssertThrowsError(try FlatNet(data: altered))
        XCTAssertThrowsError(try FlatNet(data: Data("something else".utf8)))
    }
}
