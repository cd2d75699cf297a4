import Foundation
import Glibc
import MartletCore
import MartletIO
import MartletTesting
import Testing

@testable import MartletServer

/// A program that finds the channel to its predecessor and runs a script.
private func python(_ script: String) throws -> [String] {
    let start = """
        import os, signal, socket, sys, time
        lines = os.environ["MARTLET_TAKEOVER"].split("\\n")
        parent, number = (int(word) for word in lines[0].split())
        assert parent == os.getppid()
        channel = socket.socket(fileno=number)

        """
    return [try Executable.named("python3"), "-c", start + script]
}

@Suite struct `A successor` {
    private let clock = Clock.system

    @Test func `is ready when it says so, and gets the confirmation`() async throws {
        let successor = try Successor.start(
            python("channel.send(b'R'); sys.exit(0 if channel.recv(1) == b'C' else 1)"), groups: [], others: [])
        #expect(await successor.waitUntilReady(timeout: .seconds(20), clock: clock) == .ready)
        successor.confirm()
        #expect(exitStatus(successor.pid) == 0)
    }

    @Test func `has our sockets and nothing else of ours`() async throws {
        let any = try #require(SocketEndpoint(literal: "127.0.0.1", port: 0))
        let handed = try Socket.listen(on: any, sharesPort: true, backlog: 1)
        let kept = try Socket.listen(on: any, sharesPort: true, backlog: 1)
        // A library's descriptor without close-on-exec.
        let stray = dup(kept)
        defer { for descriptor in [handed, kept, stray] { close(descriptor) } }
        let port = try #require(Socket.localAddress(handed)).port
        let group = InheritedSockets.Group(side: .public, address: "127.0.0.1:0", descriptors: [handed])
        let script = """
            assert lines[1:] == ["public 127.0.0.1:0=\(handed)"], lines
            assert socket.socket(fileno=\(handed)).getsockname()[1] == \(port)
            assert not os.path.exists("/proc/self/fd/\(kept)") and not os.path.exists("/proc/self/fd/\(stray)")
            assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()
            channel.send(b"R")
            """
        let successor = try Successor.start(python(script), groups: [group], others: [])
        #expect(await successor.waitUntilReady(timeout: .seconds(20), clock: clock) == .ready)
        #expect(exitStatus(successor.pid) == 0)
        // The inherited socket is still open here.
        #expect(Socket.localAddress(handed)?.port == port)
    }

    @Test(arguments: [("sys.exit(78)", "status 78"), ("os.kill(os.getpid(), signal.SIGKILL)", "signal 9")])
    func `that ends is not waited for`(_ script: String, _ how: String) async throws {
        let successor = try Successor.start(python(script), groups: [], others: [])
        #expect(await successor.waitUntilReady(timeout: .seconds(20), clock: clock) == .ended(how))
    }

    @Test func `that sends an unknown message is killed`() async throws {
        let successor = try Successor.start(python("channel.send(b'x'); time.sleep(60)"), groups: [], others: [])
        #expect(await successor.waitUntilReady(timeout: .seconds(20), clock: clock) == .ended("signal 9"))
    }

    @Test func `that is not ready in time is notified and terminated`() async throws {
        let folder = try TemporaryFolder()
        let script = """
            def end(number, frame):
                open("\(folder.file("word"))", "wb").write(channel.recv(1))
                os._exit(0)
            signal.signal(signal.SIGTERM, end)
            open("\(folder.file("begun"))", "w").close()
            time.sleep(600)
            """
        let successor = try Successor.start(python(script), groups: [], others: [])
        try waitUntil("it has begun") { unsafe access(folder.file("begun"), F_OK) == 0 }
        #expect(await successor.waitUntilReady(timeout: .zero, clock: clock) == .timedOut)
        #expect(await successor.abort(clock: clock) == "status 0")
        #expect(kill(successor.pid, 0) != 0)
        #expect(try String(contentsOfFile: folder.file("word"), encoding: .utf8) == "N")
    }

    @Test func `that was cancelled is not waited for`() async throws {
        let successor = try Successor.start(python("time.sleep(60)"), groups: [], others: [])
        successor.cancel()
        #expect(await successor.waitUntilReady(timeout: .seconds(20), clock: clock) == .cancelled)
        await successor.abort(clock: clock)
        #expect(kill(successor.pid, 0) != 0)
    }

    @Test func `cannot be a program that does not exist`() {
        let error = #expect(throws: IOError.self) {
            try Successor.start(["/nowhere/martlet", "run"], groups: [], others: [])
        }
        #expect(error?.errno == ENOENT)
    }

    /// How a child of this process ended.
    private func exitStatus(_ pid: Int32) -> Int32 {
        var status: Int32 = 0
        guard unsafe waitpid(pid, &status, 0) == pid, status & 0x7F == 0 else { return -1 }
        return status >> 8 & 0xFF
    }
}
