/// Decides which event loops stand still: a value without threads.
///
/// It counts looks, not time. Where the whole process was stopped for a while, or the machine was, one look is late for
/// everything, and nothing is taken for stalled that turns before the next ones.
struct StallWatch: Sendable {
    private struct Loop: Sendable {
        var turns: UInt64
        /// At how many looks in a row it had not turned since the one before.
        var missed = 0
    }

    private var loops: [Loop] = []
    private var stalled: Set<Int> = []

    /// Which loops have stalled or turned again at a look.
    struct Change: Equatable {
        var stalled: [Int] = []
        var recovered: [Int] = []
    }

    var isStalled: Bool { !stalled.isEmpty }

    func isStalled(_ index: Int) -> Bool { stalled.contains(index) }

    /// Looks at the loops, each of which should have turned since the last look.
    /// - Parameters:
    ///   - turns: how often each of them has turned.
    ///   - limit: at how many looks in a row a loop may not have turned.
    mutating func look(at turns: [UInt64], limit: Int) -> Change {
        var change = Change()
        for (index, count) in turns.enumerated() {
            if index == loops.count { loops.append(Loop(turns: count &- 1)) }
            loops[index].missed = count == loops[index].turns ? loops[index].missed + 1 : 0
            loops[index].turns = count
            if loops[index].missed >= max(limit, 1) {
                if stalled.insert(index).inserted { change.stalled.append(index) }
            } else if loops[index].missed == 0, stalled.remove(index) != nil {
                change.recovered.append(index)
            }
        }
        return change
    }
}
