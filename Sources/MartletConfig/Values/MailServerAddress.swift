package import MartletCore

/// The address of a mail server: `smtps://user@mail.example.com`, or `smtp://…` with STARTTLS.
///
/// The user is percent-decoded; a password is given elsewhere, so that the address can be shown.
@frozen package struct MailServerAddress: Sendable, Hashable {
    /// A lower-case name, or an address; IPv6 without brackets.
    package let host: String
    package let port: UInt16
    /// Whether TLS begins with the connection; otherwise STARTTLS is required, except of a loopback address.
    package let isSecure: Bool
    package let user: String?

    /// Whether the connection is encrypted, which only a loopback address makes unnecessary.
    package var isEncrypted: Bool { isSecure || !HostAndPort.isLoopback(host) }

    /// `nil` if the text is not such an address.
    package init?(_ text: String) {
        guard text.utf8.count <= 512, text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else { return nil }
        let bytes = Array(text.utf8)
        isSecure = bytes.starts(with: "smtps://".utf8)
        let scheme = isSecure ? "smtps://" : "smtp://"
        guard bytes.starts(with: scheme.utf8) else { return nil }
        var rest = bytes[scheme.utf8.count...]
        if rest.last == UInt8(ascii: "/") { rest = rest.dropLast() }
        guard !rest.contains(where: { "/?#".utf8.contains($0) }) else { return nil }
        var user: String?
        if let at = rest.lastIndex(of: UInt8(ascii: "@")) {
            guard let name = Self.decoded(rest[..<at]) else { return nil }
            user = name
            rest = rest[(at + 1)...]
        }
        guard let (host, port) = HostAndPort.parse(Array(rest)), port != 0 else { return nil }
        self.host = host
        self.port = port ?? (isSecure ? 465 : 587)
        self.user = user
    }

    /// A percent-decoded user without control characters; `nil` for one with a password.
    private static func decoded(_ bytes: ArraySlice<UInt8>) -> String? {
        guard !bytes.isEmpty, !bytes.contains(UInt8(ascii: ":")) else { return nil }
        var plain: [UInt8] = []
        var rest = bytes
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                plain.append(byte)
                continue
            }
            guard rest.count >= 2, rest.prefix(2).allSatisfy(isHexDigit),
                let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
            else { return nil }
            plain.append(value)
            rest = rest.dropFirst(2)
        }
        guard plain.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else { return nil }
        return String(validating: plain, as: UTF8.self)
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x41...0x46).contains(byte & 0xDF)
    }
}

extension MailServerAddress: ConfigurationValue {
    package init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        guard let address = MailServerAddress(try node.text()) else {
            // Not shown, because it may contain a password.
            throw node.error(
                .configBadURL,
                "must be smtps://user@host or smtp://user@host, with the password in 'password' or 'password_file'")
        }
        self = address
    }
}

/// The sender of mails: `auth@example.com`, or `Example <auth@example.com>`.
@frozen package struct MailSender: Sendable, Hashable {
    private static let maximumNameBytes = 128

    /// The name to show; `nil` if there is none.
    package let name: String?
    package let address: EmailAddress

    /// `nil` if the text is not a sender.
    package init?(_ text: String) {
        guard text.utf8.last == UInt8(ascii: ">"), let open = text.utf8.lastIndex(of: UInt8(ascii: "<")) else {
            guard let address = EmailAddress(text) else { return nil }
            (name, self.address) = (nil, address)
            return
        }
        var name = text[..<open]
        while name.utf8.last == UInt8(ascii: " ") { name = name.dropLast() }
        guard let address = EmailAddress(String(text[text.utf8.index(after: open)...].dropLast())), !name.isEmpty,
            name.utf8.count <= Self.maximumNameBytes,
            name.unicodeScalars.allSatisfy({
                $0.properties.generalCategory != .control && !"\"<>\\".unicodeScalars.contains($0)
            })
        else { return nil }
        (self.name, self.address) = (String(name), address)
    }
}

extension MailSender: ConfigurationValue {
    package init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        guard let sender = MailSender(try node.text()) else {
            throw node.error(
                .configBadValue, "must be an address such as auth@example.com, or Example <auth@example.com>")
        }
        self = sender
    }
}
