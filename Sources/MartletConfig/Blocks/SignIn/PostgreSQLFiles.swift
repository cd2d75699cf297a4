/// Resolves the file options of a `postgresql://` URL, whose paths are relative to the configuration file.
enum PostgreSQLFiles {
    private static let options: Set<String> = [
        "sslrootcert", "sslcert", "sslkey", "sslcrl", "sslcrldir", "passfile",
    ]

    /// The URL with the paths of its file options resolved and everything else unchanged.
    static func resolve(_ url: String, relativeTo file: String) -> String {
        guard let mark = url.utf8.firstIndex(of: UInt8(ascii: "?")) else { return url }
        let pairs = url[url.utf8.index(after: mark)...]
            .split(separator: "&", omittingEmptySubsequences: false).map { resolved($0, relativeTo: file) }
        return url[...mark] + pairs.joined(separator: "&")
    }

    private static func resolved(_ pair: Substring, relativeTo file: String) -> String {
        let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        // `system` is not a file but the trust store of the system.
        guard parts.count == 2, options.contains(String(parts[0])), !parts[1].isEmpty,
            !(parts[0] == "sslrootcert" && parts[1] == "system"), let path = decoded(parts[1])
        else { return String(pair) }
        return "\(parts[0])=\(encoded(FilePath(path, relativeTo: file).text))"
    }

    /// `nil` for an invalid percent-encoding, which libpq rejects.
    private static func decoded(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard rest.count >= 2, let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) else {
                return nil
            }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func encoded(_ path: String) -> String {
        path.utf8.map { byte in
            let isPlain =
                (0x61...0x7A).contains(byte | 0x20) || (0x30...0x39).contains(byte) || "/._-~".utf8.contains(byte)
            let digits = String(byte, radix: 16, uppercase: true)
            return isPlain ? String(UnicodeScalar(byte)) : "%" + (digits.utf8.count == 1 ? "0" : "") + digits
        }
        .joined()
    }
}
