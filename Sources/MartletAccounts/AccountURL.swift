package import MartletCore

/// The address of the account database: `accounts.url`.
///
/// `sqlite:PATH`, or `postgresql://[user[:password]@]host[:port][,…]/database[?option=value…]` with libpq's options.
package enum AccountURL: Sendable {
    case sqlite(path: String)
    /// The whole URL, which may contain a password.
    case postgresql(Secret)

    /// Parses a URL.
    /// - Throws: `accounts.bad_url`; the message never contains the password.
    package init(_ text: String) throws(AccountError) {
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else { throw .badURL(AccountURL.unknownScheme) }
        guard text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw .badURL("it contains a control character")
        }
        switch text[..<colon].lowercased() {
        case "sqlite":
            let path = String(text[text.utf8.index(after: colon)...])
            guard !path.isEmpty, path.utf8.last != UInt8(ascii: "/"), path != ":memory:" else {
                throw .badURL("sqlite: needs the path of a file, as in sqlite:martlet.db")
            }
            self = .sqlite(path: path)
        case "postgresql", "postgres":
            _ = try PostgreSQLTarget(Secret(text))
            self = .postgresql(Secret(text))
        default: throw .badURL(AccountURL.unknownScheme)
        }
    }

    /// Whether the database is on this machine, or its server is verified with TLS.
    package var isVerified: Bool {
        switch self {
        case .sqlite: true
        case .postgresql(let url): (try? PostgreSQLTarget(url))?.isVerified ?? false
        }
    }

    private static let unknownScheme = "it must start with sqlite: or postgresql://"
}

extension AccountURL: CustomStringConvertible {
    /// The SQLite path, or only the scheme for PostgreSQL; for logs.
    package var description: String {
        switch self {
        case .sqlite(let path): "sqlite:\(path)"
        case .postgresql: "postgresql:"
        }
    }
}

extension AccountError {
    static func badURL(_ reason: String) -> AccountError {
        .unavailable(.accountsBadURL, "invalid account store URL: \(reason)")
    }
}
