import CLinux
import Glibc
import Testing

@testable import MartletIO

@Suite struct Sockets {
    private func option(_ fd: Int32, _ name: Int32) -> Int32 {
        var value: Int32 = -1
        var length = socklen_t(MemoryLayout<Int32>.size)
        _ = unsafe getsockopt(fd, Int32(IPPROTO_TCP), name, &value, &length)
        return value
    }

    private func congestionControl(of fd: Int32) -> String {
        var name = [UInt8](repeating: 0, count: 16)
        var length = socklen_t(name.count)
        _ = unsafe getsockopt(fd, Int32(IPPROTO_TCP), TCP_CONGESTION, &name, &length)
        return String(decoding: name.prefix { $0 != 0 }, as: UTF8.self)
    }

    @Test(arguments: ["127.0.0.1", "::1"])
    func `accepted connections inherit the options of their listener`(host: String) throws {
        let address = try #require(SocketEndpoint(literal: host, port: 0))
        let listener = try Socket.listen(on: address, sharesPort: false, backlog: 8)
        defer { close(listener) }
        let bound = try #require(Socket.localAddress(listener))
        let (client, _) = try Socket.connect(to: bound)
        defer { close(client) }
        var accepted: Int32 = -1
        while accepted < 0 { accepted = Socket.accept(listener)?.fd ?? -1 }
        defer { close(accepted) }
        for fd in [client, accepted] {
            #expect(option(fd, TCP_NODELAY) != 0)
            #expect(["reno", "cubic"].contains(congestionControl(of: fd)))
        }
    }

    @Test func `an inherited listener has TCP_NODELAY, too`() throws {
        let plain = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(plain) }
        #expect(CLinux.listen(plain, 1) == 0)
        #expect(option(plain, TCP_NODELAY) == 0)
        _ = try #require(Socket.adopt(plain))
        #expect(option(plain, TCP_NODELAY) != 0)
    }

    @Test(arguments: ["0.0.0.0", "127.0.0.1", "10.9.99.100", "255.255.255.255", "203.0.113.7", "::1", "2001:db8::ff"])
    func `an address has one text`(literal: String) throws {
        let address = try #require(SocketEndpoint(literal: literal, port: 80))
        #expect(String(decoding: address.addressUTF8, as: UTF8.self) == literal && address.addressText == literal)
        #expect(SocketEndpoint.text(of: address.addressBytes) == literal)
    }

    @Test(arguments: [
        ("127.0.0.1", true), ("127.9.9.9", true), ("128.0.0.1", false), ("0.0.0.0", false), ("::1", true),
        ("::", false), ("::2", false), ("1::1", false),
    ])
    func `loopback addresses are recognized`(literal: String, isLoopback: Bool) throws {
        #expect(try #require(SocketEndpoint(literal: literal, port: 80)).isLoopback == isLoopback)
    }

    @Test func `a wait for events that fails is a pause`() {
        let begin = ContinuousClock.now
        // More descriptors than the process may have open.
        #expect(martlet_poll(nil, .max, -1) == 0)
        #expect(ContinuousClock.now - begin >= .milliseconds(20))
    }
}
