import Testing

@testable import MartletProxy

extension TurnList {
    /// Starts a turn.
    /// - Returns: its connections.
    mutating func tokens() -> [EventToken] {
        var tokens: [EventToken] = []
        for index in 0..<start() { tokens.append(self[index]) }
        return tokens
    }
}

@Suite struct TurnListTests {
    private static func token(_ index: Int) -> EventToken {
        EventToken(upstream: Handle(index: Int32(index), generation: 1))
    }

    @Test func `what is added during a turn belongs to the next one`() {
        var list = TurnList()
        for index in 0..<3 { list.append(Self.token(index)) }
        var turns: [[Int32]] = []
        for turn in 1...3 {
            var handled: [Int32] = []
            for index in 0..<list.start() {
                handled.append(list[index].upstream.index)
                if turn == 1 { list.append(Self.token(10 + index)) }
            }
            turns.append(handled)
        }
        let isEmpty = list.isEmpty
        #expect(turns == [[0, 1, 2], [10, 11, 12], []] && isEmpty)
    }

    @Test func `many connections are handled in their order, over and over`() {
        var list = TurnList()
        for turn in 0..<5 {
            for index in 0..<200 { list.append(Self.token(index + turn)) }
            let waits = !list.isEmpty
            let handled = list.tokens().map { Int($0.upstream.index) }
            #expect(waits && handled == Array(turn..<turn + 200))
        }
    }
}
