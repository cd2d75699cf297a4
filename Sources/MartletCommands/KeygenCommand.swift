internal import MartletConfig
internal import MartletCrypto
internal import MartletIdentities
internal import MartletServer

/// `martlet keygen accounts`: prints a new key.
struct KeygenCommand {
    /// What keys are made for.
    private static let purposes = ["accounts"]

    /// - Throws: `UsageError` unless the only word is a purpose.
    init(_ options: Options) throws(Options.UsageError) {
        guard let purpose = options.words.first, KeygenCommand.purposes.contains(purpose) else {
            let hint = Suggestion.phrase(for: options.words.first ?? "", among: KeygenCommand.purposes)
            throw Options.UsageError(message: "expected accounts\(hint)")
        }
    }

    func run() -> ExitCode {
        do throws(CryptoError) {
            Output.line(try GrantKeys.makeText())
            return .ok
        } catch {
            Output.error("martlet keygen: \(error.code): no random bytes available\n")
            return .internalFault
        }
    }
}
