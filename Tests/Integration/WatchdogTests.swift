import Foundation
import Glibc
import MartletTesting
import Testing

/// What happens when an event loop stands still, as in a deadlock.
@Suite struct `A loop that stands still` {
    private static func text(_ message: HTTPMessage) -> String {
        "\(message.status) \(String(decoding: message.body, as: UTF8.self))"
    }

    @Test(arguments: ["martlet-loop-0", "martlet-admin-0"])
    func `makes health checks fail until it turns again`(thread: String) throws {
        try withOpenGateway(server: "workers: 2\nwatchdog: 1s") { gateway, _ throws in
            #expect(try Self.text(gateway.askAdmin("/livez")) == "200 alive\n")
            let stopped = try StoppedThread(thread, of: gateway.process)
            try waitUntil("the health check fails") {
                (try? Self.text(gateway.askAdmin("/livez"))) == "503 stalled\n"
            }
            #expect(try gateway.askAdmin("/readyz").status == 503)
            try waitUntil("the stall is logged") {
                gateway.log.contains {
                    $0["event"] == "event loop stalled" && $0["loop"] == thread && $0["code"] == "server.loop_stalled"
                }
            }
            try stopped.release()
            try waitUntil("the health check succeeds") {
                (try? Self.text(gateway.askAdmin("/livez"))) == "200 alive\n"
            }
            #expect(try gateway.askAdmin("/readyz").status == 200)
            try waitUntil("its end is logged") {
                gateway.log.contains { $0["event"] == "event loop turns again" && $0["loop"] == thread }
            }
        }
    }

    @Test func `makes health checks fail as threads of tasks do`() throws {
        try withOpenGateway(server: "watchdog: 1s\nhealth: { path: /healthz }") { gateway, _ throws in
            // A thread has the name of its creator until it runs.
            var names: Set<String> = []
            try waitUntil("all have their names") {
                names = try Set(gateway.threadNames().filter { $0.hasPrefix("martlet-task-") })
                return names.count == max(ProcessInfo.processInfo.activeProcessorCount, 2)
            }
            let stopped = try names.map { try StoppedThread($0, of: gateway.process) }
            try waitUntil("the stall is logged") {
                gateway.log.contains { $0["event"] == "event loop stalled" && $0["loop"] == "tasks" }
            }
            // Each from the loop or from the watchdog, whichever has accepted the connection.
            for path in ["/livez", "/readyz", "/livez", "/livez"] {
                #expect(try Self.text(gateway.askAdmin(path)) == "503 stalled\n")
            }
            #expect(try gateway.get("/healthz").status == 503)
            // What needs no task is served.
            #expect(try gateway.get("/").status == 200)
            for thread in stopped { try thread.release() }
            try waitUntil("the health check succeeds") {
                (try? Self.text(gateway.askAdmin("/livez"))) == "200 alive\n"
            }
            #expect(try gateway.get("/healthz").status == 200)
            try waitUntil("its end is logged") {
                gateway.log.contains { $0["event"] == "event loop turns again" && $0["loop"] == "tasks" }
            }
        }
    }

    @Test func `does not keep the process from its end`() throws {
        try withOpenGateway(server: "workers: 2\ntimeouts: { drain: 1s }") { gateway, _ throws in
            let stopped = try StoppedThread("martlet-loop-0", of: gateway.process)
            gateway.process.kill(SIGTERM)
            try waitUntil("the gateway has given up") {
                gateway.log.contains { $0["event"] == "event loop did not end" }
            }
            // A traced thread that is stopped cannot end, so the process goes with the tracer.
            try stopped.release()
            #expect(try gateway.process.wait() == .exited(0))
        }
    }

    @Test func `is what a service manager does not hear of`() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("notify")
        let socket = try NotifySocket(path)
        try withMartlet(
            GatewayConfig(endpoints: ["http://127.0.0.1:9"], server: "workers: 1\nwatchdog: 1s").text,
            environment: ["NOTIFY_SOCKET": path, "WATCHDOG_USEC": "600000"]
        ) { gateway throws in
            for _ in 0..<5 { try socket.expect("WATCHDOG=1") }
            let stopped = try StoppedThread("martlet-loop-0", of: gateway.process)
            try waitUntil("nothing is said") { socket.isSilent(for: .seconds(2)) }
            try stopped.release()
            try socket.expect("WATCHDOG=1")
        }
    }

    @Test func `is none of libdispatch's threads, of which there are none`() throws {
        try withOpenGateway { gateway, _ throws in
            #expect(try gateway.get("/").status == 200)
            #expect(try gateway.askAdmin("/status").status == 200)
            let names = try gateway.threadNames()
            #expect(names.allSatisfy { $0.hasPrefix("martlet") }, "\(names)")
            #expect(names.filter { $0.hasPrefix("martlet-task-") }.count >= 2)
        }
    }
}

/// A datagram socket in place of the service manager's.
private struct NotifySocket {
    private let descriptor: Int32

    init(_ path: String) throws {
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
        let bound = unsafe withUnsafePointer(to: &address) {
            unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard bound == 0 else { throw TestFailure("bind: \(errno)") }
    }

    /// The next message; `nil` if none comes in time.
    private func next(within limit: Duration) -> String? {
        var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard unsafe poll(&polled, 1, Deadline(in: limit).milliseconds) > 0 else { return nil }
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = unsafe recv(descriptor, &bytes, bytes.count, 0)
        return String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self)
    }

    func expect(_ message: String) throws {
        while let next = next(within: .seconds(30)) { if next == message { return } }
        throw TestFailure("no \(message)")
    }

    func isSilent(for span: Duration) -> Bool { next(within: span) == nil }
}
