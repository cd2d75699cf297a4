package import MartletCore
internal import MartletIO

/// The addresses and credentials of the Redis servers: `store.url`.
///
/// `redis://[[user]:password@]host[:port][/db]`, `rediss://…[?ca_file=…][&cert_file=…&key_file=…]`,
/// `redis+unix://[[user]:password@]/path[?db=N]`, `redis+sentinel://host[:port],…/master[/db][?tls=true]`,
/// `redis+cluster://host[:port],…` and `rediss+cluster://…`.
package struct RedisURL: Sendable {
    /// The address of a server.
    package enum Address: Sendable, Hashable {
        /// A host name, or an address literal without brackets.
        case tcp(host: String, port: UInt16)
        case unix(path: String)

        /// Whether others than this machine's processes can reach the server.
        package var isOnNetwork: Bool {
            switch self {
            case .tcp(let host, let port):
                host.lowercased() != "localhost" && SocketEndpoint(literal: host, port: port)?.isLoopback != true
            case .unix: false
            }
        }
    }

    /// How the servers are found.
    package enum Layout: Sendable, Hashable {
        /// One server.
        case single(Address)
        /// The sentinels know the master of this name.
        case sentinel([Address], master: String)
        /// Any node of the cluster knows the others.
        case cluster([Address])
    }

    /// TLS settings of the connection.
    package struct Security: Sendable, Equatable {
        /// The trusted certificate authorities; `nil` for the system's. Relative paths are not resolved.
        package var caFile: String?
        /// The client certificate and its key; both or neither.
        package var certificateFile: String?
        package var keyFile: String?
        /// The name that the certificates of all servers must have; `nil` for the host of each.
        package var serverName: String?

        package init() {}
    }

    /// A user and its password.
    package struct Credentials: Sendable {
        package var user: String?
        package var password: Secret
        /// Reads the password again, before each connection attempt; `nil` if it cannot change. It may block.
        package var readAgain: (@Sendable () -> Secret?)?

        package init(user: String?, password: Secret, readAgain: (@Sendable () -> Secret?)? = nil) {
            (self.user, self.password, self.readAgain) = (user, password, readAgain)
        }
    }

    /// The maximum number of sentinels, or of the nodes of a cluster, that a URL lists.
    package static let maximumSeeds = 16

    package var layout: Layout
    package var credentials: Credentials?
    /// Those of the sentinels, which have users of their own.
    package var sentinelCredentials: Credentials?
    package var database = 0
    /// `nil` for plaintext.
    package var security: Security?

    /// The addresses that the URL lists.
    package var seeds: [Address] {
        switch layout {
        case .single(let address): [address]
        case .sentinel(let addresses, _), .cluster(let addresses): addresses
        }
    }

    /// Parses a URL.
    /// - Throws: a `redis.url_…` code; the message never contains the password.
    package init(_ text: String) throws(RedisURLError) {
        guard let colon = text.utf8.firstIndex(of: 0x3A) else { throw .unknownScheme }
        let rest = text[text.utf8.index(after: colon)...]
        switch text[..<colon].lowercased() {
        case "redis": try self.init(tcp: RedisURLParts(rest), security: nil)
        case "rediss": try self.init(tcp: RedisURLParts(rest), security: Security())
        case "redis+unix": try self.init(unix: RedisURLParts(rest))
        case "redis+sentinel": try self.init(sentinels: RedisURLParts(rest))
        case "redis+cluster": try self.init(cluster: RedisURLParts(rest), security: nil)
        case "rediss+cluster": try self.init(cluster: RedisURLParts(rest), security: Security())
        default: throw .unknownScheme
        }
    }

    private init(tcp parts: RedisURLParts, security: Security?) throws(RedisURLError) {
        let (host, port) = try RedisURLParts.hostAndPort(parts.host, defaultPort: 6379)
        layout = .single(.tcp(host: host, port: port))
        self.security = security
        credentials = try parts.credentials()
        if parts.path.count > 1 { database = try RedisURLParts.database(parts.path.dropFirst()) }
        try readFiles(parts.query())
    }

    private init(sentinels parts: RedisURLParts) throws(RedisURLError) {
        let words = parts.path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        guard let name = words.first, !name.isEmpty, words.count <= 2 else { throw .missingMaster }
        let master = try RedisURLParts.decode(name)
        guard master.utf8.count <= 128, master.utf8.allSatisfy(RedisURLParts.isMasterByte) else { throw .badMaster }
        layout = .sentinel(try parts.hosts(defaultPort: 26379), master: master)
        credentials = try parts.credentials()
        if words.count == 2 { database = try RedisURLParts.database(words[1]) }
        var options = try parts.query()
        if let index = options.firstIndex(where: { $0.0 == "tls" }) {
            switch options.remove(at: index).1 {
            case "true": security = Security()
            case "false": break
            default: throw .unknownQuery
            }
        }
        try readFiles(options)
    }

    private init(cluster parts: RedisURLParts, security: Security?) throws(RedisURLError) {
        guard parts.path.isEmpty || parts.path == "/" else { throw .databaseInCluster }
        layout = .cluster(try parts.hosts(defaultPort: 6379))
        self.security = security
        credentials = try parts.credentials()
        try readFiles(parts.query())
    }

    private init(unix parts: RedisURLParts) throws(RedisURLError) {
        guard parts.host.isEmpty else { throw .hostInUnix }
        let path = try RedisURLParts.decode(parts.path)
        guard path.utf8.count > 1, path.utf8.count <= 107 else { throw .badPath }
        layout = .single(.unix(path: path))
        credentials = try parts.credentials()
        for (name, value) in try parts.query() {
            guard name == "db" else { throw .unknownQuery }
            database = try RedisURLParts.database(value[...])
        }
    }

    /// Reads the options of a URL with TLS.
    private mutating func readFiles(_ options: [(String, String)]) throws(RedisURLError) {
        for (name, value) in options {
            guard security != nil else { throw .unknownQuery }
            guard !value.isEmpty else { throw .badPath }
            switch name {
            case "ca_file": security?.caFile = value
            case "cert_file": security?.certificateFile = value
            case "key_file": security?.keyFile = value
            default: throw .unknownQuery
            }
        }
        guard (security?.certificateFile == nil) == (security?.keyFile == nil) else { throw .halfCertificate }
    }
}

extension RedisURL.Address: CustomStringConvertible {
    package var description: String {
        switch self {
        case .tcp(let host, let port): host.utf8.contains(0x3A) ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path): path
        }
    }
}

extension RedisURL: CustomStringConvertible {
    /// The URL without credentials, for logs.
    package var description: String {
        let isSecure = security != nil
        let list = seeds.map(\.description).joined(separator: ",")
        switch layout {
        case .single(.unix(let path)): return "redis+unix://\(path)?db=\(database)"
        case .single: return "\(isSecure ? "rediss" : "redis")://\(list)/\(database)"
        case .sentinel(_, let master):
            return "redis+sentinel://\(list)/\(master)/\(database)\(isSecure ? "?tls=true" : "")"
        case .cluster: return "\(isSecure ? "rediss" : "redis")+cluster://\(list)"
        }
    }
}

/// The error of an invalid store URL.
package struct RedisURLError: CodedError, Equatable {
    package let code: ErrorCode
    package let message: String

    static let unknownScheme = RedisURLError(
        code: "redis.url_scheme_unknown",
        message: "store URL must start with memory:, redis://, rediss://, redis+unix://, redis+sentinel://, "
            + "redis+cluster:// or rediss+cluster://")
    static let missingMaster = RedisURLError(
        code: "redis.url_master_missing",
        message: "redis+sentinel:// needs the name of the master, as in redis+sentinel://s1,s2,s3/mymaster")
    static let badMaster = RedisURLError(
        code: "redis.url_master_missing",
        message: "store URL has a master name with other characters than letters, digits, '.', '-' and '_'")
    static let databaseInCluster = RedisURLError(
        code: "redis.url_database_invalid", message: "a Redis Cluster has one database: the store URL must have no path"
    )
    static let tooManyHosts = RedisURLError(
        code: "redis.url_host_invalid", message: "store URL has more than \(RedisURL.maximumSeeds) hosts, or one twice")
    static let malformed = RedisURLError(
        code: "redis.url_malformed",
        message: "store URL needs '//' after the scheme, and no '#', space or control character")
    static let missingHost = RedisURLError(code: "redis.url_host_missing", message: "store URL has no host")
    static let badHost = RedisURLError(code: "redis.url_host_invalid", message: "store URL has an invalid host")
    static let hostInUnix = RedisURLError(
        code: "redis.url_host_invalid", message: "redis+unix:// needs a path, as in redis+unix:///run/redis.sock")
    static let badPort = RedisURLError(
        code: "redis.url_port_invalid", message: "store URL port is not a number from 1 to 65535")
    static let badDatabase = RedisURLError(
        code: "redis.url_database_invalid", message: "store URL database is not a number from 0 to 65535")
    static let badEscape = RedisURLError(
        code: "redis.url_escape_invalid",
        message: "store URL has an invalid percent-encoding, or is not UTF-8")
    static let badPath = RedisURLError(
        code: "redis.url_path_invalid", message: "store URL has an empty or too long path")
    static let unknownQuery = RedisURLError(
        code: "redis.url_option_unknown",
        message: "store URL has a duplicate option or one that its scheme does not support "
            + "(rediss: ca_file, cert_file, key_file; redis+sentinel: tls; redis+unix: db)")
    static let halfCertificate = RedisURLError(
        code: "redis.url_certificate_incomplete", message: "store URL needs both cert_file and key_file")
    static let missingPassword = RedisURLError(
        code: "redis.url_password_missing", message: "store URL has a user without a password")
}
