private import CLinux

/// The pipes through which the kernel moves long bodies from socket to socket, so that this process copies no byte of them.
///
/// A pipe is on loan only while it holds bytes, so there are no more of them than transfers whose taker is slow at the
/// moment. One that is given back with bytes in it is closed: what one exchange left must never reach another.
struct SplicePipes: ~Copyable {
    /// Bytes put into a pipe at a time.
    static let portion = 256 * 1024
    /// Pipes on loan at once; transfers beyond it are copied.
    static let limit = 64
    /// Empty pipes that are kept for the next transfer.
    static let spares = 8

    private struct Pipe {
        var readEnd: Int32 = -1
        var writeEnd: Int32 = -1
        /// Bytes in it.
        var held = 0
    }

    private var pipes: [Pipe] = []
    /// Places of open, empty pipes.
    private var spare: [Int32] = []
    /// Places without a pipe.
    private var vacant: [Int32] = []
    /// Pipes on loan.
    private(set) var loans = 0
    /// The kernel moves bytes between these kinds of sockets.
    private var isUsable = true

    init() {}

    deinit {
        for index in pipes.indices { SplicePipes.close(pipes[index]) }
    }

    /// Pipes that are open, on loan or not.
    var open: Int { pipes.count &- vacant.count }

    /// Bytes in a pipe.
    func held(_ pipe: Int32) -> Int { pipes[Int(pipe)].held }

    /// Lends an empty pipe; `nil` where there are none to be had.
    mutating func take() -> Int32? {
        guard isUsable, loans < SplicePipes.limit else { return nil }
        if let place = spare.popLast() {
            loans &+= 1
            return place
        }
        var ends: (Int32, Int32) = (-1, -1)
        guard unsafe martlet_body_pipe(&ends.0, &ends.1, Int32(SplicePipes.portion)) == 0 else { return nil }
        let pipe = Pipe(readEnd: ends.0, writeEnd: ends.1)
        loans &+= 1
        if let place = vacant.popLast() {
            pipes[Int(place)] = pipe
            return place
        }
        pipes.append(pipe)
        return Int32(pipes.count &- 1)
    }

    /// Takes a pipe back.
    mutating func give(_ place: Int32) {
        loans &-= 1
        guard pipes[Int(place)].held > 0 || spare.count >= SplicePipes.spares else { return spare.append(place) }
        SplicePipes.close(pipes[Int(place)])
        pipes[Int(place)] = Pipe()
        vacant.append(place)
    }

    /// Moves bytes from a socket into an empty pipe, at most a portion.
    /// - Returns: how many, 0 at the end of the stream, −1 with `errno`.
    mutating func fill(_ place: Int32, from socket: Int32, atMost count: Int) -> Int {
        let moved = martlet_splice(socket, pipes[Int(place)].writeEnd, min(count, SplicePipes.portion))
        if moved > 0 { pipes[Int(place)].held &+= moved }
        // A socket that cannot do it says so without having lost anything.
        if moved < 0, martlet_errno() == EINVAL { isUsable = false }
        return moved
    }

    /// Moves a pipe's bytes into a socket, until that takes no more.
    /// - Returns: how many it took, and whether it has failed.
    mutating func drain(_ place: Int32, into socket: Int32) -> (count: Int, hasFailed: Bool) {
        var count = 0
        // Only a call that finds no room makes sure of an event when there is some again.
        while pipes[Int(place)].held > 0 {
            let moved = martlet_splice(pipes[Int(place)].readEnd, socket, pipes[Int(place)].held)
            guard moved > 0 else {
                let reason = martlet_errno()
                if moved < 0, reason == EINTR { continue }
                return (count, moved == 0 || reason != EAGAIN)
            }
            pipes[Int(place)].held &-= moved
            count &+= moved
        }
        return (count, false)
    }

    private static func close(_ pipe: Pipe) {
        guard pipe.readEnd >= 0 else { return }
        _ = CLinux.close(pipe.readEnd)
        _ = CLinux.close(pipe.writeEnd)
    }
}
