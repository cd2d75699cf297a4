package import MartletCore

/// The address and credentials of a Redis server: `store.url`.
///
/// `redis://[[user]:password@]host[:port][/db]`, `rediss://…[?ca_file=…][&cert_file=…&key_file=…]`,
/// `redis+unix://[[user]:password@]/path[?db=N]`.
package struct RedisURL: Sendable {
    /// The address of the server.
    package enum Address: Sendable, Equatable {
        /// A host name, or an address literal without brackets.
        case tcp(host: String, port: UInt16)
        case unix(path: String)
    }

    /// TLS settings of the connection.
    package struct Security: Sendable, Equatable {
        /// The trusted certificate authorities; `nil` for the system's. Relative paths are not resolved.
        package var caFile: String?
        /// The client certificate and its key; both or neither.
        package var certificateFile: String?
        package var keyFile: String?
    }

    package var address: Address
    package var user: String?
    package var password: Secret?
    package var database = 0
    /// `nil` for plaintext.
    package var security: Security?

    /// Parses a URL.
    /// - Throws: a `redis.url_…` code; the message never contains the password.
    package init(_ text: String) throws(RedisURLError) {
        guard let colon = text.utf8.firstIndex(of: 0x3A) else { throw .unknownScheme }
        let rest = text[text.utf8.index(after: colon)...]
        switch text[..<colon].lowercased() {
        case "redis": try self.init(tcp: RedisURLParts(rest), security: nil)
        case "rediss": try self.init(tcp: RedisURLParts(rest), security: Security())
        case "redis+unix": try self.init(unix: RedisURLParts(rest))
        case "redis+sentinel", "redis+cluster": throw .unsupportedScheme
        default: throw .unknownScheme
        }
    }

    private init(tcp parts: RedisURLParts, security: Security?) throws(RedisURLError) {
        let (host, port) = try parts.hostAndPort(defaultPort: 6379)
        address = .tcp(host: host, port: port)
        self.security = security
        (user, password) = try parts.credentials()
        if parts.path.count > 1 { database = try RedisURLParts.database(parts.path.dropFirst()) }
        for (name, value) in try parts.query() {
            guard security != nil else { throw .unknownQuery }
            guard !value.isEmpty else { throw .badPath }
            switch name {
            case "ca_file": self.security?.caFile = value
            case "cert_file": self.security?.certificateFile = value
            case "key_file": self.security?.keyFile = value
            default: throw .unknownQuery
            }
        }
        guard (self.security?.certificateFile == nil) == (self.security?.keyFile == nil) else {
            throw .halfCertificate
        }
    }

    private init(unix parts: RedisURLParts) throws(RedisURLError) {
        guard parts.host.isEmpty else { throw .hostInUnix }
        let path = try RedisURLParts.decode(parts.path)
        guard path.utf8.count > 1, path.utf8.count <= 107 else { throw .badPath }
        address = .unix(path: path)
        (user, password) = try parts.credentials()
        for (name, value) in try parts.query() {
            guard name == "db" else { throw .unknownQuery }
            database = try RedisURLParts.database(value[...])
        }
    }
}

extension RedisURL: CustomStringConvertible {
    /// The URL without credentials, for logs.
    package var description: String {
        switch address {
        case .tcp(let host, let port):
            let name = host.utf8.contains(0x3A) ? "[\(host)]" : host
            return "\(security == nil ? "redis" : "rediss")://\(name):\(port)/\(database)"
        case .unix(let path): return "redis+unix://\(path)?db=\(database)"
        }
    }
}

/// The error of an invalid store URL.
package struct RedisURLError: CodedError, Equatable {
    package let code: ErrorCode
    package let message: String

    static let unknownScheme = RedisURLError(
        code: "redis.url_scheme_unknown",
        message: "store URL must start with memory:, redis://, rediss:// or redis+unix://")
    static let unsupportedScheme = RedisURLError(
        code: "redis.url_scheme_unsupported", message: "redis+sentinel:// and redis+cluster:// are not supported yet")
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
            + "(rediss: ca_file, cert_file, key_file; redis+unix: db)")
    static let halfCertificate = RedisURLError(
        code: "redis.url_certificate_incomplete", message: "store URL needs both cert_file and key_file")
    static let missingPassword = RedisURLError(
        code: "redis.url_password_missing", message: "store URL has a user without a password")
}
