internal import MartletTraffic

/// Where one thing is counted as under way. Unretained: counters live as long as the process.
@safe struct CounterEntry {
    private var counter: Unmanaged<ConcurrencyCounter>?

    @inline(__always)
    var isEntered: Bool { unsafe counter != nil }

    /// Counts it.
    /// - Returns: whether there was room.
    mutating func enter(_ counter: ConcurrencyCounter, maximum: Int = .max) -> Bool {
        guard counter.enter(maximum: maximum) else { return false }
        unsafe self.counter = Unmanaged.passUnretained(counter)
        return true
    }

    /// Counts it out, if it was counted.
    @inline(__always)
    mutating func leave() {
        guard let entered = unsafe counter else { return }
        unsafe entered._withUnsafeGuaranteedRef { $0.leave() }
        unsafe counter = nil
    }
}
