internal import CPostgreSQL
internal import MartletCore

/// The addresses and connection options of the servers: the URL as parsed by libpq.
struct PostgreSQLTarget: Sendable {
    /// One server, before its name is resolved.
    struct Host: Sendable, Equatable {
        /// A host name, an address, or the directory of a Unix socket.
        var name: String
        /// The resolved address; empty if the name has to be resolved or is a directory.
        var address: String
        var port: String

        var isSocket: Bool { name.utf8.first == UInt8(ascii: "/") || name.utf8.first == UInt8(ascii: "@") }
        var isLoopback: Bool { isSocket || ["localhost", "127.0.0.1", "::1"].contains(name) }
    }

    let hosts: [Host]
    /// All options except the hosts.
    private let options: [(keyword: String, value: Secret)]
    /// The servers without other options, for logs.
    let description: String
    /// Whether the server is verified with TLS, or is local.
    let isVerified: Bool

    /// The values of `sslmode`, which libpq checks only when it connects.
    private static let modes = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]

    /// Parses a URL.
    /// - Throws: `accounts.bad_url`; the message omits libpq's text, which may contain the password.
    init(_ url: Secret) throws(AccountError) {
        var parsed = try PostgreSQLTarget.parse(url)
        guard !parsed.contains(where: { $0.keyword == "service" }) else {
            throw .badURL("the option 'service' is not supported")
        }
        hosts = try PostgreSQLTarget.hosts(&parsed)
        let mode = parsed.first { $0.keyword == "sslmode" }?.value ?? ""
        guard mode.isEmpty || Self.modes.contains(mode) else {
            throw .badURL("sslmode must be one of \(Self.modes.joined(separator: ", "))")
        }
        isVerified = mode == "verify-full" || hosts.allSatisfy(\.isLoopback)
        description = hosts.map { "\($0.name.isEmpty ? $0.address : $0.name):\($0.port)" }.joined(separator: ",")
        // By default libpq would request a Kerberos ticket, with blocking calls.
        let defaults = [("gssencmode", "disable"), ("application_name", "martlet"), ("fallback_application_name", "")]
        for (keyword, value) in defaults where !parsed.contains(where: { $0.keyword == keyword }) {
            parsed.append((keyword, value))
        }
        parsed.removeAll { $0.keyword == "client_encoding" || $0.value.isEmpty }
        parsed.append(("client_encoding", "UTF8"))
        options = parsed.map { ($0.keyword, Secret($0.value)) }
    }

    /// Calls `body` with libpq's null-terminated lists of keywords and values, for servers with resolved addresses.
    func withParameters<Result>(
        _ servers: [Host],
        _ body: (UnsafePointer<UnsafePointer<CChar>?>?, UnsafePointer<UnsafePointer<CChar>?>?) -> Result
    ) -> Result {
        let lists = [
            ("host", servers.map(\.name)), ("hostaddr", servers.map(\.address)), ("port", servers.map(\.port)),
        ]
        var texts: [String] = []
        var values = CStrings([])
        for (keyword, list) in lists where list.contains(where: { !$0.isEmpty }) {
            texts.append(keyword)
            values.append(list.joined(separator: ",").utf8)
        }
        for (keyword, value) in options {
            texts.append(keyword)
            value.withBytes { values.append($0) }
        }
        return unsafe values.withPointers { values in
            let names = CStrings(texts)
            return unsafe names.withPointers { unsafe body($0, values) }
        }
    }

    private static func parse(_ url: Secret) throws(AccountError) -> [(keyword: String, value: String)] {
        let text = url.withBytes { String(decoding: $0, as: UTF8.self) }
        guard !text.utf8.contains(0) else { throw .badURL("it contains NUL") }
        var message: UnsafeMutablePointer<CChar>?
        let options = unsafe PQconninfoParse(text, &message)
        unsafe PQfreemem(message)
        guard let options = unsafe options else {
            throw .badURL(
                "libpq cannot parse it: it has an unknown option, or special characters in a user or password without "
                    + "percent-encoding")
        }
        defer { unsafe martlet_pq_free_options(options) }
        var parsed: [(keyword: String, value: String)] = []
        var next = unsafe options
        while let keyword = unsafe next.pointee.keyword {
            if let value = unsafe next.pointee.val {
                parsed.append(unsafe (String(cString: keyword), String(cString: value)))
            }
            unsafe next += 1
        }
        return parsed
    }

    /// Removes the hosts from the options; lists of addresses and ports correspond to them by index.
    private static func hosts(_ parsed: inout [(keyword: String, value: String)]) throws(AccountError) -> [Host] {
        let names = remove("host", from: &parsed)
        let addresses = remove("hostaddr", from: &parsed)
        let ports = remove("port", from: &parsed)
        let count = max(names.count, addresses.count)
        guard count > 0 else {
            throw .badURL("it has no host; a Unix socket is written postgresql:///database?host=/run/postgresql")
        }
        guard names.isEmpty || addresses.isEmpty || names.count == addresses.count,
            ports.count <= 1 || ports.count == count
        else { throw .badURL("its lists of hosts, addresses and ports differ in length") }
        var hosts: [Host] = []
        for index in 0..<count {
            let name = names.isEmpty ? "" : names[index]
            let address = addresses.isEmpty ? "" : addresses[index]
            guard !name.isEmpty || !address.isEmpty else { throw .badURL("one of its hosts is empty") }
            var port = ports.isEmpty ? "" : ports[ports.count == 1 ? 0 : index]
            if port.isEmpty { port = "5432" }
            guard port.utf8.count <= 5, port.utf8.allSatisfy({ $0 >= 48 && $0 <= 57 }), let number = UInt16(port),
                number > 0
            else { throw .badURL("its port is not a number from 1 to 65535") }
            hosts.append(Host(name: name, address: address, port: port))
        }
        return hosts
    }

    private static func remove(_ keyword: String, from parsed: inout [(keyword: String, value: String)]) -> [String] {
        guard let index = parsed.firstIndex(where: { $0.keyword == keyword }) else { return [] }
        let value = parsed.remove(at: index).value
        return value.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    }
}
