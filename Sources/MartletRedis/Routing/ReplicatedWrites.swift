internal import MartletCore

/// Groups writes that wait for replicas, because `WAIT` blocks its connection: while one group waits, the next gathers.
struct ReplicatedWrites<Write> {
    /// The maximum number of writes that gather.
    private let limit: Int
    private var gathering: [Write] = []
    private var isWaiting = false

    init(limit: Int) { self.limit = limit }

    /// Adds a write.
    /// - Returns: the group to send now, followed by one `WAIT`; `nil` while another group waits.
    /// - Throws: `redis.overloaded`.
    mutating func add(_ write: Write) throws(StoreError) -> [Write]? {
        guard gathering.count < limit else { throw .overloaded }
        gathering.append(write)
        return next()
    }

    /// The group that was sent has its replies.
    /// - Returns: the group to send now.
    mutating func finished() -> [Write]? {
        isWaiting = false
        return next()
    }

    private mutating func next() -> [Write]? {
        guard !isWaiting, !gathering.isEmpty else { return nil }
        isWaiting = true
        defer { gathering = [] }
        return gathering
    }
}
