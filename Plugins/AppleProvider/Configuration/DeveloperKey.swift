internal import MartletConfig
internal import MartletCore
internal import MartletCrypto

/// A key of the developer account, which signs client secrets: an `AuthKey_….p8` with its id.
struct DeveloperKey: Sendable {
    /// The `kid` of client secrets.
    let id: String
    let key: PrivateKey
    /// Where the key is from, for operators: its file, or the key of the configuration.
    let origin: String

    /// - Parameters:
    ///   - pem: the content of the file.
    ///   - file: the path of the file; `nil` for a key in the configuration.
    /// - Throws: `config.bad_value` that names what the file is, for anything but an unencrypted P-256 key in PKCS #8.
    init(id: String, pem: Located<Secret>, file: FilePath?) throws(ConfigurationError) {
        let text = pem.value.withBytes { Secret(Self.withLineBreaks($0)) }
        if let other = text.withBytes({ Self.otherKind(of: $0) }) { throw Self.notAKey(pem, other) }
        do throws(CryptoError) { key = try PrivateKey(pem: text) } catch {
            throw Self.notAKey(pem, text.withBytes { PrivateKeyKind.find(in: $0) } ?? "a damaged PKCS #8 key")
        }
        guard case .p256 = key.publicKey.parts else {
            throw Self.notAKey(pem, text.withBytes { PrivateKeyKind.find(in: $0) } ?? "an RSA key")
        }
        self.id = id
        origin = file.map { "private_key_file '\($0.text)'" } ?? "private_key"
    }

    /// The text with line breaks where it has the two characters `\n`, as in the lines of a `.env` file.
    private static func withLineBreaks(_ bytes: [UInt8]) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count)
        var rest = bytes[...]
        while let byte = rest.popFirst() {
            let (isBreak, isReturn) = (rest.first == UInt8(ascii: "n"), rest.first == UInt8(ascii: "r"))
            if byte == UInt8(ascii: "\\"), isBreak || isReturn {
                rest.removeFirst()
                if isBreak { text.append(0x0A) }
            } else {
                text.append(byte)
            }
        }
        return text
    }

    /// The path in `private_key_file`, if that is given.
    static func file(in reader: inout ConfigurationReader) -> FilePath? {
        reader.node("private_key_file").flatMap { try? FilePath(decoding: $0) }
    }

    private static func notAKey(_ pem: Located<Secret>, _ other: String) -> ConfigurationError {
        ConfigurationError(
            .configBadValue, at: pem.location,
            "private_key: is \(other), but must be the P-256 private key that Apple issued (AuthKey_….p8)")
    }

    /// What a file is that cannot be such a key; `nil` for an unencrypted PKCS #8 PEM, which may be one.
    static func otherKind(of bytes: [UInt8]) -> String? {
        guard let label = label(of: bytes) else {
            switch bytes.first(where: { $0 > 0x20 }) {
            case 0x30: return "a binary (DER) file"
            case UInt8(ascii: "{"): return "a JSON document"
            default: return "not a PEM file"
            }
        }
        switch label {
        case "PRIVATE KEY": return nil
        case "EC PRIVATE KEY": return "an EC key in the SEC 1 form"
        case "RSA PRIVATE KEY": return "an RSA key"
        case "ENCRYPTED PRIVATE KEY": return "an encrypted key"
        case "OPENSSH PRIVATE KEY": return "a key of OpenSSH"
        case "PUBLIC KEY": return "a public key"
        case "CERTIFICATE": return "a certificate"
        case "CERTIFICATE REQUEST": return "a certificate request"
        default: return "a PEM file without a private key"
        }
    }

    /// The label of the first PEM boundary (RFC 7468 §2).
    private static func label(of bytes: [UInt8]) -> String? {
        let mark = Array("-----BEGIN ".utf8)
        guard let start = bytes.indices.first(where: { bytes[$0...].starts(with: mark) }) else { return nil }
        let rest = bytes[(start + mark.count)...].prefix(64)
        guard let end = rest.firstIndex(of: UInt8(ascii: "-")) else { return nil }
        return String(decoding: rest[..<end], as: UTF8.self)
    }
}

/// An id of Apple's developer account, of a team or a key: ten capital letters and digits.
struct DeveloperID: ConfigurationValue {
    static let shape = ConfigurationGrammar.Shape.pattern("^[A-Z0-9]{10}$")

    let text: String

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        text = try node.text()
        let isValid = text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) }
        guard text.utf8.count == 10, isValid else {
            throw node.error(
                .configBadValue, "must be 10 capital letters and digits, as the developer account shows it")
        }
    }
}

/// One entry of `keys`.
struct DeveloperKeyBlock: ConfigurationDecodable {
    let key: DeveloperKey

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        let id: DeveloperID = try reader.required("key_id")
        let file = DeveloperKey.file(in: &reader)
        let pem = try reader.secret("private_key")
        key = try DeveloperKey(id: id.text, pem: pem, file: file)
    }

    static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([.required("key_id", DeveloperID.shape, "The id of the key.")])
            .withSecret("private_key", required: true, "The P-256 private key that Apple issued, as PEM.")
    }
}

/// `check`: how often refresh tokens are checked.
struct CheckBlock: ConfigurationDecodable {
    private static let periods = Duration.seconds(1)...Duration.seconds(30 * 86_400)
    private static let recommended = Duration.seconds(86_400)

    let every: Duration
    let spread: Duration
    let rate: RequestRate

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        every = reader.optional("every", default: Self.recommended, in: Self.periods)
        spread = reader.optional("spread", default: .seconds(43_200), in: Duration.zero...Self.periods.upperBound)
        rate = reader.optional("rate", default: RequestRate(count: 5))
        if every < Self.recommended {
            reader.diagnostics.warning(
                .configInsecure, at: reader.location, "check.every: Apple limits checks to one per user and day (24h)")
        }
    }

    static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .optional("every", .duration, default: "24h", "The minimum time between two checks of one user."),
            .optional("spread", .duration, default: "12h", "The range over which the first checks are spread."),
            .optional("rate", RequestRate.shape, default: "5/s", "The maximum rate of checks, over all instances."),
        ])
    }
}
