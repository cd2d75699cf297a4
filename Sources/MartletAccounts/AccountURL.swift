package import MartletCore

/// Where accounts are kept, as `accounts.url` says it.
///
/// `sqlite:PATH`, or `postgresql://[user[:password]@]host[:port][,…]/database[?option=value…]` with libpq's options.
package enum AccountURL: Sendable {
    case sqlite(path: String)
    /// The whole URL, which may hold a password.
    case postgresql(Secret)

    /// Reads a URL.
    /// - Throws: `accounts.bad_url`; the message never holds the password.
    package init(_ text: String) throws(AccountError) {
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else { throw .badURL(AccountURL.unknownScheme) }
        guard text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw .badURL("it holds a control character")
        }
        switch text[..<colon].lowercased() {
        case "sqlite":
            let path = String(text[text.utf8.index(after: colon)...])
            guard !path.isEmpty, path.utf8.last != UInt8(ascii: "/"), path != ":memory:" else {
                throw .badURL("sqlite: wants the path of a file, as in sqlite:martlet.db")
            }
            self = .sqlite(path: path)
        case "postgresql", "postgres":
            _ = try PostgreSQLTarget(Secret(text))
            self = .postgresql(Secret(text))
        default: throw .badURL(AccountURL.unknownScheme)
        }
    }

    private static let unknownScheme = "it begins with neither sqlite: nor postgresql://"
}

extension AccountURL: CustomStringConvertible {
    /// The file's path, or that it is PostgreSQL; for logs.
    package var description: String {
        switch self {
        case .sqlite(let path): "sqlite:\(path)"
        case .postgresql: "postgresql:"
        }
    }
}

extension AccountError {
    static func badURL(_ reason: String) -> AccountError {
        .unavailable(.accountsBadURL, "the account store's URL is not usable: \(reason)")
    }
}
