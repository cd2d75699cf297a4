package import MartletCore

/// The memory for bodies that this process keeps until its own endpoints can read them, of all loops together.
///
/// Anyone can send one to an endpoint, on each stream of each connection; so each network has a share. Bodies that are
/// still to come leave an eighth of it to those that are there: slow ones keep no login from being read.
package final class BodyPool: Sendable {
    /// That of the process.
    package static let process = BodyPool(ShareBounds(.ownBodies))

    private struct State: Sendable {
        package var shares = Shares()
        package var entries = 0
        package var bytes = 0
    }

    private let bounds: ShareBounds
    private let state = Lock(State())

    package init(_ bounds: ShareBounds) { self.bounds = bounds }

    /// The bytes that are kept.
    package var bytes: Int { state.withLock { $0.bytes } }

    fileprivate func grow(by bytes: Int, isNew: Bool, isWhole: Bool, of owner: WorkOwner) -> Bool {
        state.withLock { state in
            let entries = isNew ? 1 : 0
            let leftEntries = isWhole || !isNew ? 0 : bounds.ownEntries / 8
            let leftBytes = isWhole ? 0 : bounds.ownBytes / 8
            let free = bounds.entries - state.entries - leftEntries
            let freeBytes = bounds.bytes - state.bytes - leftBytes
            guard entries <= free, bytes <= freeBytes,
                state.shares.hasCapacity(
                    for: owner, entries: entries + leftEntries, bytes: bytes + leftBytes, of: bounds, free: free,
                    freeBytes: freeBytes)
            else { return false }
            state.shares.add(entries: entries, bytes: bytes, of: owner)
            state.entries += entries
            state.bytes += bytes
            return true
        }
    }

    fileprivate func release(_ bytes: Int, of owner: WorkOwner) {
        state.withLock { state in
            state.shares.remove(bytes, of: owner)
            state.entries -= 1
            state.bytes -= bytes
        }
    }
}

/// The memory of one body; it is given back with the last reference.
package final class BodyLease {
    private let pool: BodyPool
    private let owner: WorkOwner
    private var bytes: Int

    /// - Parameter isWhole: whether nothing of the body is still to come.
    /// - Returns: `nil` if the network, or the process, keeps too much already.
    package init?(_ bytes: Int, isWhole: Bool, for owner: WorkOwner, in pool: BodyPool) {
        guard pool.grow(by: bytes, isNew: true, isWhole: isWhole, of: owner) else { return nil }
        (self.pool, self.owner, self.bytes) = (pool, owner, bytes)
    }

    /// Whether the body may grow.
    package func grow(by count: Int, isWhole: Bool) -> Bool {
        guard pool.grow(by: count, isNew: false, isWhole: isWhole, of: owner) else { return false }
        bytes += count
        return true
    }

    deinit { pool.release(bytes, of: owner) }
}
