// A net from its flat file (.bgnet) in plain Swift: a reference to read, port and test against.
// The layout is described in bgrl/nets/flat.py.
//
// This source has not been compiled or run where bgrl is developed, which has no Swift compiler.
// Run the golden test before relying on it: BGRL_BUNDLE=/path/to/bundle swift test

import CryptoKit
import Foundation

/// 52 counts: slot s of the player on roll at s, of the opponent at 26 + s. Each side is seen by its
/// owner; a slot is the pips a checker there still has to go: 0 borne off, 1...24 the points, 25 the bar.
public typealias Board = [Int]

public struct FlatNetError: Error, CustomStringConvertible {
    public let description: String
}

public struct FlatNet {
    public let hash: String
    public let variant: String
    public let encoder: String
    /// What a single game, a gammon and a backgammon count.
    public let points: [Float]

    private struct Layer {
        let bias: [Float]
        /// One row for each output.
        let weights: [[Float]]
    }

    private let slots: [Int]
    private let shift: [Float]
    private let scale: [Float]
    private let cap: [Float]
    private let layers: [Layer]
    /// Whether the first layer's units are products: output j times output j + width.
    private let products: Bool

    /// Reads a flat file; throws, naming `name`, if it is of another kind or version, or not whole.
    public init(data: Data, name: String = "the flat net") throws {
        let bytes = [UInt8](data)
        func fail(_ reason: String) -> FlatNetError { FlatNetError(description: "\(name): \(reason)") }
        guard bytes.count >= 8, Array(bytes[0..<8]) == Array("BGRLNET".utf8) + [0] else {
            throw fail("no flat net")
        }
        guard bytes.count >= 160 else { throw fail("cut short") }

        func integer(_ at: Int) -> Int {
            Int(bytes[at]) | Int(bytes[at + 1]) << 8 | Int(bytes[at + 2]) << 16 | Int(bytes[at + 3]) << 24
        }
        func float(_ at: Int) -> Float { Float(bitPattern: UInt32(integer(at))) }
        func text(_ at: Int, _ length: Int) -> String {
            String(decoding: bytes[at..<(at + length)].prefix { $0 != 0 }, as: UTF8.self)
        }

        guard integer(8) == 2 else { throw fail("version \(integer(8)); this reader knows 2") }
        let end = bytes.count - 32
        guard Array(SHA256.hash(data: Data(bytes[0..<end]))) == Array(bytes[end...]) else {
            throw fail("cut short or altered")
        }
        let storage = integer(12)  // 0 float32, 1 float16, 2 int8
        let layerCount = integer(32)
        let inputCount = integer(36)
        var at = 128
        func floats(_ count: Int) -> [Float] {
            let values = (0..<count).map { float(at + 4 * $0) }
            at += 4 * count
            return values
        }
        func integers(_ count: Int) -> [Int] {
            let values = (0..<count).map { integer(at + 4 * $0) }
            at += 4 * count
            return values
        }

        hash = text(40, 12)
        variant = text(100, 24)
        products = integer(124) == 1
        encoder = text(68, 32)
        points = [20, 24, 28].map { Float(integer($0)) }
        let widths = integers(layerCount)
        slots = integers(inputCount)
        shift = floats(inputCount)
        scale = floats(inputCount)
        cap = floats(inputCount)
        var read: [Layer] = []
        var columns = inputCount
        for rows in widths {
            let bias = floats(rows)
            let rowScale = storage == 2 ? floats(rows) : []
            let size = [4, 2, 1][storage]
            let start = at
            let weights: [[Float]] = (0..<rows).map { row in
                (0..<columns).map { column in
                    let place = start + size * (row * columns + column)
                    switch storage {
                    case 2: return Float(Int8(bitPattern: bytes[place])) * rowScale[row]
                    case 1: return FlatNet.half(Int(bytes[place]) | Int(bytes[place + 1]) << 8)
                    default: return float(place)
                    }
                }
            }
            at += (size * rows * columns + 3) / 4 * 4
            read.append(Layer(bias: bias, weights: weights))
            columns = products && read.count == 1 ? rows / 2 : rows
        }
        layers = read
    }

    /// IEEE 754 half precision, which older Macs lack as a type.
    private static func half(_ bits: Int) -> Float {
        let sign: Float = bits & 0x8000 == 0 ? 1 : -1
        let exponent = (bits >> 10) & 31
        let fraction = Float(bits & 1023)
        if exponent == 0 { return sign * fraction * powf(2, -24) }
        return sign * (1 + fraction / 1024) * powf(2, Float(exponent - 15))
    }

    /// The net's inputs.
    public func encode(_ board: Board) -> [Float] {
        slots.indices.map { i in
            min(max((Float(board[slots[i]]) - shift[i]) * scale[i], 0), cap[i])
        }
    }

    /// Win, win a gammon or better, win a backgammon, lose a gammon or better, lose a backgammon; for
    /// the player on roll before the dice. Exact where the opponent has no checker left.
    public func evaluate(_ board: Board) -> [Float] {
        let level = FlatNet.lossLevel(board)
        if level > 0 { return [0, 0, 0, level >= 2 ? 1 : 0, level >= 3 ? 1 : 0] }
        var x = encode(board)
        for (k, layer) in layers.enumerated() {
            x = zip(layer.weights, layer.bias).map { row, bias in
                let sum = zip(row, x).reduce(bias) { $0 + $1.0 * $1.1 }
                return k == layers.count - 1 ? 1 / (1 + expf(-sum)) : max(sum, 0)
            }
            if k == 0 && products { x = zip(x, x.dropFirst(x.count / 2)).map { $0 * $1 } }
        }
        return FlatNet.clamped(x, board)
    }

    /// Cubeless equity in points.
    public func equity(_ p: [Float]) -> Float {
        points[0] * (2 * p[0] - 1) + (points[1] - points[0]) * (p[1] - p[3])
            + (points[2] - points[1]) * (p[2] - p[4])
    }

    /// How the player on roll has just lost: 0 not at all, 1 a single game, 2 a gammon, 3 a backgammon.
    public static func lossLevel(_ board: Board) -> Int {
        if board[27...51].contains(where: { $0 > 0 }) { return 0 }
        if board[0] > 0 { return 1 }
        return board[19...25].contains(where: { $0 > 0 }) ? 3 : 2
    }

    /// Takes out what the board makes impossible, and nests the rest.
    public static func clamped(_ p: [Float], _ board: Board) -> [Float] {
        let mine = (1...25).last { board[$0] > 0 } ?? 0
        let theirs = (1...25).last { board[26 + $0] > 0 } ?? 0
        let contact = mine + theirs >= 25
        func within(_ x: Float, _ top: Float) -> Float { min(max(x, 0), top) }
        let win = within(p[0], 1)
        let winGammon = board[26] == 0 ? within(p[1], win) : 0
        let loseGammon = board[0] == 0 ? within(p[3], 1 - win) : 0
        let winBackgammon = contact || theirs > 18 ? within(p[2], winGammon) : 0
        let loseBackgammon = contact || mine > 18 ? within(p[4], loseGammon) : 0
        return [win, winGammon, winBackgammon, loseGammon, loseBackgammon]
    }
}
