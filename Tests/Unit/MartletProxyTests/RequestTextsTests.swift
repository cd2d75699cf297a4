import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// The texts of a request, set from strings.
private struct TextsBench: ~Copyable {
    private var texts = RequestTexts()

    init(_ requestID: String) { begin(requestID) }

    var client: String { unsafe String(decoding: texts.client, as: UTF8.self) }

    /// As a JSON access record has them.
    var members: String { unsafe String(decoding: texts.members, as: UTF8.self) }

    var beforePath: String { unsafe String(decoding: texts.beforePath, as: UTF8.self) }

    mutating func set(client: String) { texts.set(client: AddressText(client.utf8)) }

    /// ID, method, host and path.
    var parts: [String] {
        unsafe [
            String(decoding: texts.requestID, as: UTF8.self), String(decoding: texts.method, as: UTF8.self),
            String(decoding: texts.host, as: UTF8.self), String(decoding: texts.path, as: UTF8.self),
        ]
    }

    var names: String { unsafe String(decoding: texts.names, as: UTF8.self) }

    mutating func add(names: String) {
        let bytes = Array(names.utf8)
        unsafe bytes.withUnsafeBufferPointer { unsafe texts.add(names: $0) }
    }

    mutating func begin(_ requestID: String, from client: String = "192.0.2.1") {
        let bytes = Array(requestID.utf8)
        let address = AddressText(client.utf8)
        unsafe bytes.withUnsafeBufferPointer { unsafe texts.begin(requestID: $0, client: address) }
    }

    mutating func add(_ method: String, _ host: String) {
        let methodBytes = Array(method.utf8)
        let hostBytes = Array(host.utf8)
        unsafe methodBytes.withUnsafeBufferPointer { method in
            unsafe hostBytes.withUnsafeBufferPointer { host in unsafe texts.add(method: method, host: host) }
        }
    }

    mutating func set(path: String) {
        let bytes = Array(path.utf8)
        unsafe bytes.withUnsafeBufferPointer { unsafe texts.set(path: $0) }
    }

    mutating func set(rejected target: String) {
        let bytes = Array(target.utf8)
        unsafe bytes.withUnsafeBufferPointer { unsafe texts.set(rejected: $0) }
    }

    mutating func set(unreadable head: String) {
        let bytes = Array(head.utf8)
        unsafe bytes.withUnsafeBufferPointer { unsafe texts.set(unreadable: $0) }
    }
}

@Suite struct `Texts of a request` {
    @Test func `end with the ID of the trace, where there is one`() {
        var texts = RequestTexts()
        texts.set(client: AddressText("192.0.2.1".utf8))
        let names = Array("\",\"subject\":\"ada\",\"session_id\":\"ses_1".utf8)
        unsafe names.withUnsafeBufferPointer { unsafe texts.add(names: $0) }
        let hasTrace = unsafe !texts.trace.isEmpty
        #expect(!hasTrace)
        let caller = unsafe Array(texts.caller)
        #expect(caller == names)
        let trace = String(repeating: "a1", count: 16)
        texts.add(trace: trace)
        let found = unsafe String(decoding: texts.trace, as: UTF8.self)
        #expect(found == trace)
        let same = unsafe Array(texts.caller)
        #expect(same == names)
        let all = unsafe String(decoding: texts.names, as: UTF8.self)
        #expect(all == String(decoding: names, as: UTF8.self) + "\",\"trace_id\":\"" + trace)
    }

    @Test func `are empty before the first request`() {
        let texts = RequestTexts()
        let counts = unsafe [
            texts.requestID.count, texts.client.count, texts.method.count, texts.host.count, texts.path.count,
            texts.names.count,
        ]
        #expect(counts == [0, 0, 0, 0, 0, 0])
    }

    @Test func `begin with the ID and the client`() {
        let bench = TextsBench("0123")
        let (parts, client) = (bench.parts, bench.client)
        #expect(parts == ["0123", "", "", ""])
        #expect(client == "192.0.2.1")
    }

    // MARK: Members of a JSON record

    @Test func `stand in one buffer as in a JSON record`() {
        var bench = TextsBench("0123")
        let unparsed = bench.members
        bench.add("GET", "a.example")
        bench.set(path: "/a")
        let parsed = bench.members
        bench.add(names: #"","subject":"ada"#)
        let (named, beforePath) = (bench.members, bench.beforePath)
        #expect(unparsed == #"0123","client":"192.0.2.1","method":"","host":"","path":""#)
        #expect(parsed == #"0123","client":"192.0.2.1","method":"GET","host":"a.example","path":"/a"#)
        #expect(named == parsed + #"","subject":"ada"#)
        #expect(beforePath == #"0123","client":"192.0.2.1","method":"GET","host":"a.example","path":""#)
    }

    @Test(arguments: ["", "::1", "2001:db8:ffff:ffff:ffff:ffff:198.51.100.255", "unix"])
    func `have the client that a proxy names instead of the peer`(_ client: String) {
        var bench = TextsBench("0123")
        bench.set(client: client)
        let before = (bench.client, bench.parts)
        bench.add("GET", "a")
        bench.set(path: "/a")
        let (after, parts, members) = (bench.client, bench.parts, bench.members)
        #expect(before.0 == client && before.1 == ["0123", "", "", ""])
        #expect(after == client && parts == ["0123", "GET", "a", "/a"])
        #expect(members == #"0123","client":"\#(client)","method":"GET","host":"a","path":"/a"#)
    }

    @Test func `have the client of the request that began last`() {
        var bench = TextsBench("0123")
        bench.set(client: "2001:db8::1")
        bench.begin("4567", from: "198.51.100.7")
        let (client, parts) = (bench.client, bench.parts)
        #expect(client == "198.51.100.7" && parts == ["4567", "", "", ""])
    }

    @Test func `have method, host and path once these are known`() {
        var bench = TextsBench("0123")
        bench.add("GET", "a.example:81")
        let withHost = bench.parts
        bench.set(path: "/a/b")
        let withPath = bench.parts
        #expect(withHost == ["0123", "GET", "a.example:81", ""])
        #expect(withPath == ["0123", "GET", "a.example:81", "/a/b"])
    }

    @Test func `have a path without a method before the head is parsed`() {
        var bench = TextsBench("0123")
        bench.set(path: "/a")
        let parts = bench.parts
        #expect(parts == ["0123", "", "", "/a"])
    }

    @Test(arguments: [
        ("GET", "", "/"), ("", "a", "/"), ("", "", ""), ("GET", "a", ""), ("\u{540D}", "\u{E9}.example", "/\u{540D}"),
    ])
    func `may be empty each, and have any bytes`(_ method: String, _ host: String, _ path: String) {
        var bench = TextsBench("0123")
        bench.add(method, host)
        bench.set(path: path)
        let parts = bench.parts
        #expect(parts == ["0123", method, host, path])
    }

    @Test func `have the path that was set last`() {
        var bench = TextsBench("0123")
        bench.add("GET", "a")
        bench.set(path: "/a/longer/path")
        bench.set(path: "/b")
        let shorter = bench.parts
        bench.set(path: "/a/path/that/is/longer")
        let longer = bench.parts
        #expect(shorter == ["0123", "GET", "a", "/b"])
        #expect(longer == ["0123", "GET", "a", "/a/path/that/is/longer"])
    }

    @Test func `lose the path when method and host are replaced`() {
        var bench = TextsBench("0123")
        bench.add("DELETE", "a.example")
        bench.set(path: "/a")
        bench.add("GET", "b")
        let parts = bench.parts
        #expect(parts == ["0123", "GET", "b", ""])
    }

    @Test func `lose everything when the next request begins`() {
        var bench = TextsBench("0123456789")
        bench.add("GET", "a")
        bench.set(path: "/a")
        bench.begin("4567")
        let next = bench.parts
        bench.begin("")
        let last = bench.parts
        #expect(next == ["4567", "", "", ""])
        #expect(last == ["", "", "", ""])
    }

    @Test func `have the names of the caller behind the path, until something before them changes`() {
        var bench = TextsBench("0123")
        bench.add("GET", "a")
        bench.set(path: "/a")
        let none = bench.names
        bench.add(names: "ada")
        let (parts, ada) = (bench.parts, bench.names)
        bench.add(names: "bob")
        bench.add(names: "")
        let bob = bench.names
        bench.set(path: "/b")
        let changed = bench.names
        bench.add(names: "cleo")
        bench.begin("4567")
        let next = bench.names
        #expect(none.isEmpty && parts == ["0123", "GET", "a", "/a"] && ada == "ada" && bob == "bob")
        #expect(changed.isEmpty && next.isEmpty)
    }

    @Test func `stay together while their memory grows`() {
        let path = "/" + String(repeating: "a", count: 10_000)
        let host = String(repeating: "h", count: 300)
        var bench = TextsBench("0123")
        bench.add("GET", host)
        bench.set(path: path)
        let parts = bench.parts
        #expect(parts == ["0123", "GET", host, path])
    }

    // MARK: Rejected requests

    @Test(arguments: [
        ("/a", "/a"), ("/a?token=secret", "/a"), ("http://user:secret@b/a", "b/a"), ("/\u{540D}", "/%E5%90%8D"),
        ("", ""),
    ])
    func `have a rejected target without its secrets`(_ target: String, _ shown: String) {
        var bench = TextsBench("0123")
        bench.add("GET", "a")
        bench.set(path: "/earlier")
        bench.set(rejected: target)
        let parts = bench.parts
        #expect(parts == ["0123", "GET", "a", shown])
    }

    @Test(arguments: [
        ("GET /a b HTTP/1.1\r\nHost: a\r\n", "GET", "/a%20b"), ("M-SEARCH * HTTP/1.1\r\n", "M-SEARCH", "*"),
        ("GET /a?token=secret", "GET", "/a"), ("GET ", "GET", ""),
    ])
    func `have method and target of a head that is not valid, and no host`(
        _ head: String, _ method: String, _ target: String
    ) {
        var bench = TextsBench("0123")
        bench.add("POST", "earlier")
        bench.set(path: "/earlier")
        bench.set(unreadable: head)
        let parts = bench.parts
        #expect(parts == ["0123", method, "", target])
    }

    @Test(arguments: ["", "GET", "\u{16}\u{3}\u{1} /", " GET / HTTP/1.1", "{\"password\": \"secret\"}"])
    func `are unchanged by a head without a request line`(_ head: String) {
        var bench = TextsBench("0123")
        bench.set(unreadable: head)
        let parts = bench.parts
        #expect(parts == ["0123", "", "", ""])
    }
}
