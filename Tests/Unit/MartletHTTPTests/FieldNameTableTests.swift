import MartletHTTP
import MartletTesting
import Testing

@Suite struct FieldNameTableTests {
    private static let names = ["X-User-Id", "Remote-User", "True-Client-IP", "a", "X-Forwarded-Uri"]

    /// The numbers of names are their indices, `X-Forwarded-Uri` has 0; 100 and 101 are the families'.
    private static func table() -> FieldNameTable {
        FieldNameTable(
            known: [(.cookie, 50), (.xRealIP, 51)],
            names: names.enumerated().map { ($1, $1 == "X-Forwarded-Uri" ? 0 : UInt8($0 + 1)) },
            families: .init(authentication: 100, forwarding: 101))
    }

    /// The number of a name as a parser reads it.
    private func value(_ table: borrowing FieldNameTable, _ name: String) -> UInt8? {
        let bytes = Array("GET / HTTP/1.1\r\nHost: a\r\n\(name): x\r\nPadding-So-That-More-Follows: y\r\n\r\n".utf8)
        var parser = RequestParser(maximumHeadBytes: 1024)
        var head = RequestHead(maximumFields: 10)
        guard case .complete = parser.parse(bytes.span, into: &head) else { return nil }
        return table.value(of: head.fields[1], in: bytes.span)
    }

    @Test(
        arguments: [
            ("X-User-Id", 1), ("XUSERID", 1), ("x_user_id", 1), ("-x--user-id-", 1), ("Remote-User", 2),
            ("remote.user", 2),
            ("REMOTEUSER", 2), ("-True-Client-IP", 3), ("A", 4), ("-a", 4), ("a-", 4), ("X-Auth-Any", 100),
            ("X--Auth-Any", 100),
            ("x_auth.any", 100), ("XAuthAny", 100), ("-X-Auth-Any", 100), ("X-Forwarded-User", 101),
            ("x__forwarded!user", 101),
            ("XForwardedFor", 101), ("X-Forwarded-Uri", 0), ("x_forwarded_uri", 0), ("Cookie", 50), ("X-Real-IP", 51),
            ("Accept", 0), ("Referer", 0), ("User-Agent", 0), ("X-Trace-Id", 0), ("X-Authority", 0), ("X-A", 0),
            ("X-", 0),
            ("--", 0), ("!", 0), ("ab", 0), ("X-Name-That-Is-Longer-Than-Thirty-One-Bytes", 0),
            ("X-Auth-That-Is-Longer-Than-Thirty-One-Bytes", 100),
        ] as [(String, UInt8)])
    func `finds a name by its letters, else its family`(_ name: String, _ expected: UInt8) {
        let table = Self.table()
        #expect(value(table, name) == expected, "\(name)")
    }

    @Test func `its short way agrees with its long one`() {
        var random = SeededGenerator(seed: 5)
        let table = Self.table()
        let pieces = ["x", "-", "user", "id", "auth", "forwarded", "remote", "a", "_", "~", "1", "-X-"]
        for _ in 0..<5000 {
            let name = (0..<Int.random(in: 1...6, using: &random)).map { _ in pieces.randomElement(using: &random)! }
                .joined()
            let bytes = Array(name.utf8)
            let found = value(table, name)
            #expect(found == table.find(bytes.span, ByteRange(from: 0, to: bytes.count)), "\(name)")
        }
    }
}
