internal import MartletAudit
internal import MartletConfig
internal import MartletCore
internal import MartletCrypto
internal import MartletIdentities
internal import MartletRedis
internal import MartletServer

/// `martlet keygen accounts|store|audit [--out FILE]`: prints a new key, or writes it to a new file.
struct KeygenCommand: Command {
    private enum Purpose: String, CaseIterable { case accounts, store, audit }

    private let purpose: Purpose
    private let path: String?

    init(_ options: Options, _ program: Program) {
        purpose = options.words.first.flatMap(Purpose.init) ?? .accounts
        path = options["out"]
    }

    private static func withoutBreak(_ pem: Secret) -> String {
        let text = pem.withBytes { String(decoding: $0, as: UTF8.self) }
        return text.hasSuffix("\n") ? String(text.dropLast()) : text
    }

    func run() -> ExitCode {
        let text: String
        do throws(CryptoError) {
            switch purpose {
            case .accounts: text = try GrantKeys.makeText()
            case .store: text = try StoreSeal.makeKeyText()
            case .audit: text = Self.withoutBreak(try AuditKey().pem())
            }
        } catch {
            Output.error("martlet keygen: \(error.code): no random bytes available\n")
            return .internalFault
        }
        guard let path else {
            Output.line(text)
            return .ok
        }
        // Only its owner may read it.
        if let reason = SystemFile.create(path, Array("\(text)\n".utf8), mode: 0o600) {
            Output.error("martlet keygen: cannot write \(TerminalText.escaped(path)): \(reason)\n")
            return .configuration
        }
        return .ok
    }

    static let grammar = CommandGrammar("keygen", "Make a key for accounts, store.seal or audit") { grammar in
        grammar.details = "Prints a new key: 32 random bytes in base64, for audit a P-256 private key as PEM."
        let out = CommandOption.value(
            "out", "FILE", .file, "write the key to FILE, which must not exist yet and only its owner may read")
        grammar.subcommands = [
            CommandGrammar(
                "accounts", "for accounts.key_file, which encrypts what issuers grant, such as Apple's refresh tokens"
            ) { $0.options = [out] },
            CommandGrammar(
                "store", "for store.seal.key_file, which authenticates what instances read from the store"
            ) { store in
                store.options = [out]
                store.example("martlet keygen store --out store.key", "a key for store.seal.key_file")
            },
            CommandGrammar("audit", "for audit.key_file, which signs the audit log") { audit in
                audit.options = [out]
                audit.example("martlet keygen audit --out audit.pem", "a key for audit.key_file")
            },
        ]
        grammar.example("martlet keygen accounts --out account.key", "a key for accounts.key_file")
        grammar.exits = [
            .ok: "done", .internalFault: "no random bytes are available",
            .configuration: "the file exists or cannot be written",
        ]
    }
}
