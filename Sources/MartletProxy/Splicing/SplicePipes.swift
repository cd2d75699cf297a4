private import CLinux

/// A pipe of a ``SplicePipes``.
struct PipeHandle: Hashable, Sendable, BitwiseCopyable {
    let index: Int32

    @inline(__always)
    static var none: PipeHandle { PipeHandle(index: -1) }

    @inline(__always)
    var isNone: Bool { index < 0 }
}

/// The pipes for splicing long bodies from socket to socket without copying them in this process.
///
/// A pipe is in use only while it holds bytes, so there are no more of them than transfers with a slow receiver. One
/// that is released with bytes in it is closed: bytes of one exchange must never reach another.
struct SplicePipes: ~Copyable {
    /// Bytes moved into a pipe at a time.
    static let portion = 256 * 1024
    /// Most pipes in use; further transfers are copied.
    static let limit = 64
    /// Empty pipes that are kept for reuse.
    static let spares = 8

    private struct Pipe {
        var readEnd: Int32 = -1
        var writeEnd: Int32 = -1
        /// Bytes in the pipe.
        var byteCount = 0
    }

    private var pipes: [Pipe] = []
    /// Open, empty pipes.
    private var spare: [PipeHandle] = []
    /// Entries without a pipe.
    private var vacant: [PipeHandle] = []
    /// Number of pipes in use.
    private(set) var inUse = 0
    /// Splicing works between these kinds of sockets.
    private var isUsable = true
    /// Where the two descriptors of a pipe are counted; `nil` counts none.
    private let descriptors: DescriptorBudget?

    init(_ descriptors: DescriptorBudget? = nil) { self.descriptors = descriptors }

    deinit {
        for index in pipes.indices { close(pipes[index]) }
    }

    /// Number of open pipes, in use or not.
    var open: Int { pipes.count &- vacant.count }

    /// Number of bytes in a pipe.
    func byteCount(_ pipe: PipeHandle) -> Int { pipes[Int(pipe.index)].byteCount }

    /// Acquires an empty pipe; `nil` where none is available.
    mutating func acquire() -> PipeHandle? {
        guard isUsable, inUse < SplicePipes.limit else { return nil }
        if let handle = spare.popLast() {
            inUse &+= 1
            return handle
        }
        guard descriptors?.take(2) ?? true else { return nil }
        var ends: (Int32, Int32) = (-1, -1)
        guard unsafe martlet_body_pipe(&ends.0, &ends.1, Int32(SplicePipes.portion)) == 0 else {
            descriptors?.release(2)
            return nil
        }
        let pipe = Pipe(readEnd: ends.0, writeEnd: ends.1)
        inUse &+= 1
        if let handle = vacant.popLast() {
            pipes[Int(handle.index)] = pipe
            return handle
        }
        pipes.append(pipe)
        return PipeHandle(index: Int32(pipes.count &- 1))
    }

    /// Releases a pipe.
    mutating func release(_ handle: PipeHandle) {
        inUse &-= 1
        let index = Int(handle.index)
        guard pipes[index].byteCount > 0 || spare.count >= SplicePipes.spares else { return spare.append(handle) }
        close(pipes[index])
        pipes[index] = Pipe()
        vacant.append(handle)
    }

    /// Moves bytes from a socket into an empty pipe, at most a portion.
    /// - Returns: how many, 0 at the end of the stream, −1 with `errno`.
    mutating func fill(_ handle: PipeHandle, from socket: Int32, atMost count: Int) -> Int {
        let index = Int(handle.index)
        let moved = martlet_splice(socket, pipes[index].writeEnd, min(count, SplicePipes.portion))
        if moved > 0 { pipes[index].byteCount &+= moved }
        // A socket that cannot splice reports it without losing anything.
        if moved < 0, martlet_errno() == EINVAL { isUsable = false }
        return moved
    }

    /// Moves a pipe's bytes into a socket, until that accepts no more.
    /// - Returns: how many it accepted, and whether it has failed.
    mutating func drain(_ handle: PipeHandle, into socket: Int32) -> (count: Int, hasFailed: Bool) {
        let index = Int(handle.index)
        var count = 0
        // Only a call that returns EAGAIN guarantees a later event.
        while pipes[index].byteCount > 0 {
            let moved = martlet_splice(pipes[index].readEnd, socket, pipes[index].byteCount)
            guard moved > 0 else {
                return (count, moved == 0 || martlet_errno() != EAGAIN)
            }
            pipes[index].byteCount &-= moved
            count &+= moved
        }
        return (count, false)
    }

    private func close(_ pipe: Pipe) {
        guard pipe.readEnd >= 0 else { return }
        _ = CLinux.close(pipe.readEnd)
        _ = CLinux.close(pipe.writeEnd)
        descriptors?.release(2)
    }
}
