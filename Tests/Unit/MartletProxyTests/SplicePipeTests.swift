import CLinux
import Glibc
import MartletTesting
import Testing

@testable import MartletProxy

/// Two connected non-blocking stream sockets.
private final class SocketPair {
    let near: Int32
    let far: Int32

    init() {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        unsafe #expect(socketpair(AF_UNIX, type, 0, &ends) == 0)
        near = ends[0]
        far = ends[1]
    }

    deinit {
        close(near)
        close(far)
    }

    func write(_ bytes: [UInt8]) { unsafe #expect(send(near, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count) }

    func read(_ count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let got = unsafe recv(far, &bytes, count, 0)
        return Array(bytes.prefix(max(got, 0)))
    }
}

@Suite struct `Splice pipes` {
    @Test func `bytes go through in order`() throws {
        var pipes = SplicePipes()
        let (from, to) = (SocketPair(), SocketPair())
        let payload = Payload.bytes(30_000)
        from.write(payload)
        let lent = pipes.acquire()
        let pipe = try #require(lent)
        let (first, held) = (pipes.fill(pipe, from: from.far, atMost: 20_000), pipes.byteCount(pipe))
        #expect(first == 20_000 && held == 20_000)
        let (one, left) = (pipes.drain(pipe, into: to.near), pipes.byteCount(pipe))
        #expect(one.count == 20_000 && !one.hasFailed && left == 0)
        let (second, two) = (pipes.fill(pipe, from: from.far, atMost: 1 << 30), pipes.drain(pipe, into: to.near))
        #expect(second == 10_000 && two.count == 10_000)
        var arrived: [UInt8] = []
        while arrived.count < payload.count {
            let part = to.read(payload.count)
            try #require(!part.isEmpty)
            arrived += part
        }
        #expect(arrived == payload)
        let dry = pipes.fill(pipe, from: from.far, atMost: 1)
        shutdown(from.near, Int32(SHUT_WR))
        let end = pipes.fill(pipe, from: from.far, atMost: 1)
        #expect(dry == -1 && end == 0)
    }

    @Test func `a slow receiver leaves the rest in the pipe`() throws {
        var pipes = SplicePipes()
        let (from, to) = (SocketPair(), SocketPair())
        let lent = pipes.acquire()
        let pipe = try #require(lent)
        var (sent, taken) = (0, 0)
        while pipes.byteCount(pipe) == 0 {
            from.write([UInt8](repeating: 7, count: 4096))
            let count = pipes.fill(pipe, from: from.far, atMost: 4096)
            try #require(count > 0)
            sent += count
            taken += pipes.drain(pipe, into: to.near).count
        }
        let left = pipes.byteCount(pipe)
        #expect(sent == taken + left)
        while !to.read(65_536).isEmpty {}
        let (rest, after) = (pipes.drain(pipe, into: to.near), pipes.byteCount(pipe))
        #expect(rest.count == left && !rest.hasFailed && after == 0)
    }

    @Test func `a closed receiver has failed`() throws {
        signal(SIGPIPE, SIG_IGN)
        var pipes = SplicePipes()
        let (from, to) = (SocketPair(), SocketPair())
        let lent = pipes.acquire()
        let pipe = try #require(lent)
        from.write([1, 2, 3])
        let filled = pipes.fill(pipe, from: from.far, atMost: 3)
        shutdown(to.near, Int32(SHUT_WR))
        let (end, held) = (pipes.drain(pipe, into: to.near), pipes.byteCount(pipe))
        #expect(filled == 3 && end.count == 0 && end.hasFailed && held == 3)
    }

    @Test func `a pipe with bytes in it is never reused`() throws {
        var pipes = SplicePipes()
        let from = SocketPair()
        let lent = pipes.acquire()
        let first = try #require(lent)
        from.write([1, 2, 3])
        let filled = pipes.fill(first, from: from.far, atMost: 3)
        let before = [pipes.inUse, pipes.open]
        pipes.release(first)
        let after = [pipes.inUse, pipes.open]
        #expect(filled == 3 && before == [1, 1] && after == [0, 0])
        let again = pipes.acquire()
        let second = try #require(again)
        let held = pipes.byteCount(second)
        pipes.release(second)
        let end = [pipes.inUse, pipes.open]
        #expect(held == 0 && end == [0, 1])
    }

    @Test func `pipes in use and spare pipes are limited`() {
        var pipes = SplicePipes()
        var lent: Set<PipeHandle> = []
        while let pipe = pipes.acquire() { lent.insert(pipe) }
        #expect(lent.count == SplicePipes.limit)
        for pipe in lent { pipes.release(pipe) }
        let (loans, open, another) = (pipes.inUse, pipes.open, pipes.acquire())
        #expect(loans == 0 && open == SplicePipes.spares && another != nil)
    }

    @Test func `splicing is not tried again after EINVAL`() throws {
        var pipes = SplicePipes()
        let lent = pipes.acquire()
        let pipe = try #require(lent)
        let poller = epoll_create1(0)
        let filled = pipes.fill(pipe, from: poller, atMost: 8)
        close(poller)
        pipes.release(pipe)
        let another = pipes.acquire()
        #expect(filled == -1 && another == nil)
    }
}
