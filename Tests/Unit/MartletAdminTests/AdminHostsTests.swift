import MartletIO
import Testing

@testable import MartletAdmin

@Suite struct `Hosts of the admin listener` {
    static let good: [(String?, String)] = [
        (nil, "127.0.0.1"), ("localhost", "127.0.0.1"), ("LOCALHOST:9901", "127.0.0.1"), ("localhost.", "10.0.0.7"),
        ("127.0.0.1:9901", "127.0.0.1"), ("127.0.0.1", "172.17.0.2"), ("[::1]:9901", "::1"),
        ("10.0.0.7:9901", "10.0.0.7"), ("10.0.0.7", "::ffff:10.0.0.7"), ("[fe80::1]", "fe80:0:0::1"),
        ("gw.example.com", "10.0.0.7"),
        ("127.0.0.2:9901", "127.0.0.1"), ("127.255.0.9", "::1"), ("GW.example.com:1", "10.0.0.7"),
        ("a.admin.test", "10.0.0.7"),
    ]

    static let bad: [(String, String)] = [
        ("attacker.example", "127.0.0.1"), ("", "127.0.0.1"), ("localhost.attacker.example", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1"), ("127.1", "127.0.0.1"), ("2130706433", "127.0.0.1"), ("0x7f000001", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1"), ("10.0.0.8", "10.0.0.7"), ("[::]", "::1"), ("[localhost]", "127.0.0.1"),
        ("[127.0.0.1]", "127.0.0.1"), ("::1", "::1"), ("localhost:x", "127.0.0.1"), ("localhost:9901x", "127.0.0.1"),
        ("[::1]x", "::1"), ("admin.test", "10.0.0.7"), ("xadmin.test", "10.0.0.7"),
        ("127.0.0.1.", "127.0.0.1"), ("127.0.0.1.:9901", "127.0.0.1"), ("127.0.0.2", "10.0.0.7"),
        ("127.0.0.02", "127.0.0.1"), ("128.0.0.1", "127.0.0.1"), ("127.0.2", "127.0.0.1"),
        ("gw.example.com.attacker.example", "10.0.0.7"),
    ]

    private let hosts = AdminHosts(["gw.example.com", "*.admin.test"])

    @Test(arguments: good) func `are loopback's, the connection's own address, and those of the file`(
        host: String?, local: String
    ) {
        #expect(hosts.accept(host, local: SocketEndpoint(literal: local, port: 9901)))
    }

    @Test(arguments: bad) func `are no others, and no odd spellings`(host: String, local: String) {
        #expect(!hosts.accept(host, local: SocketEndpoint(literal: local, port: 9901)))
    }

    @Test func `of a unix socket are those of loopback`() {
        let local = SocketEndpoint(path: "/run/x.sock")
        #expect(hosts.accept("localhost", local: local) && hosts.accept("127.0.0.1", local: local))
        #expect(!hosts.accept("[::]", local: local) && !hosts.accept("0.0.0.0", local: local))
    }
}
