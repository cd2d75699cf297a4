/// How many calls of a provider run, and wait, at a time.
package struct BulkheadLimits: Sendable, Hashable {
    /// The most calls that run; each may block a thread.
    package let concurrency: Int
    /// The most calls that wait for one of them to end: half of them for one network's neighbors, a quarter for itself.
    package let queue: Int

    package init(concurrency: Int, queue: Int) {
        self.concurrency = max(concurrency, 1)
        self.queue = max(queue, 0)
    }

    /// Those of a provider from a shared library, where the configuration has none.
    package static let standard = BulkheadLimits(concurrency: 64, queue: 256)
}
