private import CLinux

/// The buffer that a loop receives into, one read at a time.
@safe struct ReceiveBuffer: ~Copyable {
    static let size = 64 * 1024

    private let base: UnsafeMutablePointer<UInt8>

    init() { unsafe base = .allocate(capacity: ReceiveBuffer.size) }

    deinit { unsafe base.deallocate() }

    /// `recv(2)`.
    /// - Returns: the number of bytes, 0 at the end of the stream, −1 with `errno`.
    func receive(from fd: Int32) -> Int { unsafe martlet_receive(fd, base, ReceiveBuffer.size, 0) }

    /// The first bytes of the last read; valid until the next read.
    func bytes(_ count: Int) -> UnsafeBufferPointer<UInt8> { unsafe UnsafeBufferPointer(start: base, count: count) }
}
