internal import MartletCore

/// The credentials that the service has rejected, for as long as it said; bounded, the oldest are replaced first.
struct RejectionCache {
    /// The most entries: some 300 KiB.
    static let limit = 4_096

    private var ends: [[UInt8]: MonotonicTime] = [:]
    /// The digests in a ring: the next one to be replaced is at `next` once it is full.
    private var ring: [[UInt8]] = []
    private var next = 0

    var count: Int { ends.count }

    /// Whether a credential is rejected without a call.
    /// - Parameter digest: of the credential, and of what the rejection depends on.
    func contains(_ digest: [UInt8], at now: MonotonicTime) -> Bool {
        guard let end = ends[digest] else { return false }
        return now < end
    }

    /// Adds a rejected credential.
    mutating func add(_ digest: [UInt8], until end: MonotonicTime) {
        guard ends.updateValue(end, forKey: digest) == nil else { return }
        if ring.count < Self.limit {
            ring.append(digest)
        } else {
            ends[ring[next]] = nil
            ring[next] = digest
            next = (next + 1) % Self.limit
        }
    }
}
