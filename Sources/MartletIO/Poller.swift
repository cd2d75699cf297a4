private import CLinux

/// The events of a descriptor, with the values of epoll.
///
/// The values are computed: they become constants in other modules, which would call an accessor for a stored one.
@usableFromInline package struct Readiness: OptionSet, Sendable {
    @usableFromInline package let rawValue: UInt32

    @inlinable package init(rawValue: UInt32) { self.rawValue = rawValue }

    /// Whether any of the bits of `any` is set. (The standard library's set algebra is not specialized across modules.)
    @inlinable package func has(_ any: Readiness) -> Bool { rawValue & any.rawValue != 0 }

    @inlinable package static var readable: Readiness { Readiness(rawValue: 0x001) }
    @inlinable package static var writable: Readiness { Readiness(rawValue: 0x004) }
    @inlinable package static var failed: Readiness { Readiness(rawValue: 0x008) }
    /// Both directions are closed.
    @inlinable package static var hungUp: Readiness { Readiness(rawValue: 0x010) }
    /// The peer has closed its sending side.
    @inlinable package static var readClosed: Readiness { Readiness(rawValue: 0x2000) }
    /// Edge-triggered.
    @inlinable package static var edge: Readiness { Readiness(rawValue: 1 << 31) }
    /// The connection has failed or is closed in both directions.
    @inlinable package static var broken: Readiness { Readiness(rawValue: 0x018) }
    /// There are bytes, an end of stream or an error to read.
    @inlinable package static var input: Readiness { Readiness(rawValue: 0x001 | 0x2000 | 0x018) }
    /// The peer has closed its sending side, or the connection has ended.
    @inlinable package static var ended: Readiness { Readiness(rawValue: 0x2000 | 0x018) }
    /// The events of connections, which are registered once.
    @inlinable package static var connection: Readiness { Readiness(rawValue: 0x001 | 0x004 | 0x2000 | 1 << 31) }
    /// Wake only one of the pollers that share a descriptor.
    @inlinable package static var exclusive: Readiness { Readiness(rawValue: 1 << 28) }
}

/// `epoll(7)`: which descriptors are ready, in batches. Used by one thread.
@safe package struct Poller: ~Copyable {
    /// The most events of one batch.
    package static let batch = 256

    private let descriptor: Int32
    private let events: UnsafeMutablePointer<epoll_event>

    package init() throws(IOError) {
        descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard descriptor >= 0 else { throw IOError("epoll_create1") }
        unsafe events = .allocate(capacity: Poller.batch)
        unsafe events.initialize(repeating: epoll_event(), count: Poller.batch)
    }

    deinit {
        unsafe events.deallocate()
        close(descriptor)
    }

    /// Registers a descriptor; its events carry `token`.
    package func add(_ fd: Int32, _ interest: Readiness, token: UInt64) throws(IOError) {
        guard martlet_epoll_add(descriptor, fd, interest.rawValue, token) == 0 else { throw IOError("epoll_ctl") }
    }

    /// Changes the events of a descriptor.
    package func modify(_ fd: Int32, _ interest: Readiness, token: UInt64) throws(IOError) {
        guard martlet_epoll_modify(descriptor, fd, interest.rawValue, token) == 0 else { throw IOError("epoll_ctl") }
    }

    /// Deregisters a descriptor. Closing a descriptor removes it as well.
    package func remove(_ fd: Int32) { _ = martlet_epoll_remove(descriptor, fd) }

    /// Waits for events, at most `milliseconds` (−1: no timeout); an interrupted wait returns none.
    /// - Returns: the number of events, to be read by index.
    package func wait(milliseconds: Int32) -> Int {
        let count = unsafe martlet_epoll_wait(descriptor, events, Int32(Poller.batch), milliseconds)
        return Int(max(count, 0))
    }

    /// The token of an event in the last batch.
    package func token(at index: Int) -> UInt64 {
        precondition(index >= 0 && index < Poller.batch)
        return unsafe martlet_epoll_data(events + index)
    }

    /// The readiness of an event in the last batch.
    package func readiness(at index: Int) -> Readiness {
        precondition(index >= 0 && index < Poller.batch)
        return unsafe Readiness(rawValue: events[index].events)
    }
}
