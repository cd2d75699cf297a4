internal import MartletConfig
internal import MartletCore
internal import MartletCrypto
internal import MartletIdentities
internal import MartletRedis
internal import MartletServer

/// `martlet keygen accounts|store [--out FILE]`: prints a new key, or writes it to a new file.
struct KeygenCommand {
    /// What keys are made for.
    private enum Purpose: String, CaseIterable { case accounts, store }

    private let purpose: Purpose
    private let path: String?

    /// - Throws: `UsageError` unless the only word is a purpose.
    init(_ options: Options) throws(Options.UsageError) {
        guard let purpose = options.words.first.flatMap(Purpose.init) else {
            let hint = Suggestion.phrase(for: options.words.first ?? "", among: Purpose.allCases.map(\.rawValue))
            throw Options.UsageError(message: "expected accounts or store\(hint)")
        }
        self.purpose = purpose
        path = options["out"]
    }

    func run() -> ExitCode {
        let text: String
        do throws(CryptoError) {
            switch purpose {
            case .accounts: text = try GrantKeys.makeText()
            case .store: text = try StoreSeal.makeKeyText()
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
        if let reason = NewFile.write(Array("\(text)\n".utf8), to: path, mode: 0o600) {
            Output.error("martlet keygen: cannot write \(TerminalText.escaped(path)): \(reason)\n")
            return .configuration
        }
        return .ok
    }
}
