private import CLinux
internal import MartletIO

/// An event that a loop sends to itself, to see how long events wait while more of them are ready than the loop takes in
/// one turn. epoll reports ready descriptors in the order in which they became ready.
struct DelayProbe: ~Copyable {
    private let descriptor: Int32
    private var sentAt: Int64?
    /// How much of its time on the way was counted already.
    private var counted: Int64 = 0

    init(_ poller: borrowing Poller) throws(IOError) {
        descriptor = eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK))
        guard descriptor >= 0 else { throw IOError("eventfd") }
        try poller.add(descriptor, .readable, token: EventToken.delayProbe.raw)
    }

    deinit { _ = close(descriptor) }

    /// Sends the event, unless one is on its way.
    mutating func send(at now: Int64) {
        guard sentAt == nil, eventfd_write(descriptor, 1) == 0 else { return }
        (sentAt, counted) = (now, 0)
    }

    /// How long the event that was sent has been waiting, in nanoseconds: once, when that is more than `tolerance`
    /// beyond what was counted before.
    mutating func overdue(at now: Int64, tolerance: Int64) -> Int64? {
        guard let sentAt, now &- sentAt &- counted > tolerance else { return nil }
        counted = now &- sentAt
        return counted
    }

    /// The event has arrived.
    /// - Returns: how long it took, in nanoseconds; `nil` if that was counted.
    mutating func receive(at now: Int64) -> Int64? {
        var count: eventfd_t = 0
        _ = unsafe eventfd_read(descriptor, &count)
        defer { sentAt = nil }
        return counted > 0 ? nil : sentAt.map { now &- $0 }
    }
}
