internal import MartletCore

/// The part of a URL after its scheme, split at its separators and not yet decoded.
struct RedisURLParts {
    var userInfo: Substring?
    var host: Substring
    /// With its leading slash.
    var path: Substring
    private var queryText: Substring?

    init(_ text: Substring) throws(RedisURLError) {
        guard text.utf8.starts(with: "//".utf8), text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F && $0 != 0x23 }) else {
            throw .malformed
        }
        var rest = text.dropFirst(2)
        if let separator = rest.utf8.firstIndex(of: 0x3F) {
            queryText = rest[rest.utf8.index(after: separator)...]
            rest = rest[..<separator]
        }
        // The last '@' of the authority, because a password may contain one.
        let slash = rest.utf8.firstIndex(of: 0x2F) ?? rest.endIndex
        path = rest[slash...]
        host = rest[..<slash]
        if let sign = host.utf8.lastIndex(of: 0x40) {
            userInfo = host[..<sign]
            host = host[host.utf8.index(after: sign)...]
        }
    }

    /// The hosts of a list.
    func hosts(defaultPort: UInt16) throws(RedisURLError) -> [RedisURL.Address] {
        var hosts: [RedisURL.Address] = []
        for word in host.split(separator: ",", omittingEmptySubsequences: false) {
            let (name, port) = try RedisURLParts.hostAndPort(word, defaultPort: defaultPort)
            let address = RedisURL.Address.tcp(host: name, port: port)
            guard hosts.count < RedisURL.maximumSeeds, !hosts.contains(address) else { throw .tooManyHosts }
            hosts.append(address)
        }
        return hosts
    }

    static func hostAndPort(_ host: Substring, defaultPort: UInt16) throws(RedisURLError) -> (String, UInt16) {
        var name = host
        var port: Substring?
        if host.utf8.first == 0x5B {
            guard let end = host.utf8.firstIndex(of: 0x5D) else { throw .badHost }
            name = host[..<end].dropFirst()
            let tail = host[host.utf8.index(after: end)...]
            guard tail.isEmpty || tail.utf8.first == 0x3A else { throw .badHost }
            if !tail.isEmpty { port = tail.dropFirst() }
            guard name.utf8.contains(0x3A) else { throw .badHost }
        } else if let colon = host.utf8.firstIndex(of: 0x3A) {
            name = host[..<colon]
            port = host[host.utf8.index(after: colon)...]
        }
        guard !name.isEmpty else { throw .missingHost }
        guard name.utf8.count <= 253, name.utf8.allSatisfy(RedisURLParts.isHostByte) else { throw .badHost }
        guard let port else { return (String(name), defaultPort) }
        guard let number = RedisURLParts.number(port, atMost: 65_535), number > 0 else { throw .badPort }
        return (String(name), UInt16(number))
    }

    func credentials() throws(RedisURLError) -> RedisURL.Credentials? {
        guard let userInfo else { return nil }
        guard let colon = userInfo.utf8.firstIndex(of: 0x3A) else { throw .missingPassword }
        let user = try RedisURLParts.decode(userInfo[..<colon])
        let password = try RedisURLParts.decode(userInfo[userInfo.utf8.index(after: colon)...])
        guard !password.isEmpty else { throw .missingPassword }
        return RedisURL.Credentials(user: user.isEmpty ? nil : user, password: Secret(password))
    }

    /// The options, decoded; each at most once.
    func query() throws(RedisURLError) -> [(String, String)] {
        guard let queryText else { return [] }
        var options: [(String, String)] = []
        for part in queryText.split(separator: "&", omittingEmptySubsequences: false) {
            guard let equals = part.utf8.firstIndex(of: 0x3D) else { throw .unknownQuery }
            let name = String(part[..<equals])
            guard !options.contains(where: { $0.0 == name }) else { throw .unknownQuery }
            options.append((name, try RedisURLParts.decode(part[part.utf8.index(after: equals)...])))
        }
        return options
    }

    static func database(_ text: Substring) throws(RedisURLError) -> Int {
        guard let number = number(text, atMost: 65_535) else { throw .badDatabase }
        return number
    }

    /// Percent-decodes to UTF-8 without NUL.
    static func decode(_ text: Substring) throws(RedisURLError) -> String {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == 0x25 else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(hexadecimal), let low = rest.popFirst().flatMap(hexadecimal) else {
                throw .badEscape
            }
            bytes.append(high << 4 | low)
        }
        guard !bytes.contains(0), let text = String(validating: bytes, as: UTF8.self) else { throw .badEscape }
        return text
    }

    private static func number(_ text: Substring, atMost limit: Int) -> Int? {
        guard (1...5).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let number = Int(text), number <= limit
        else { return nil }
        return number
    }

    private static func hexadecimal(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46: byte - 0x37
        case 0x61...0x66: byte - 0x57
        default: nil
        }
    }

    /// A character that Redis allows in the name of a master.
    static func isMasterByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F: true
        default: false
        }
    }

    static func isHostByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x3A, 0x5F: true
        default: false
        }
    }
}
