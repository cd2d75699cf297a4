private import CLinux
internal import MartletAudit
internal import MartletConfig
internal import MartletCore
internal import MartletCrypto
internal import MartletJSON
internal import MartletProvider
internal import MartletServer

/// `martlet audit verify FILE...`: finds a removed, changed or reordered line of an audit log.
struct AuditCommand: Command {
    /// As many files as one may name.
    static let maximumWords = 1000
    private static let hashDigits = 64

    private let files: [String]
    private let keyFiles: [String]
    private let configuration: String
    private let isNamed: Bool
    private let wantedHead: String?
    private let asJSON: Bool
    private let registry: ProviderRegistry

    /// - Throws: `UsageError` for a head that is no hash.
    init(_ options: Options, _ program: Program) throws(Options.UsageError) {
        files = Array(options.words.dropFirst())
        wantedHead = options["head"]
        if let wantedHead, wantedHead.utf8.count != Self.hashDigits || Hexadecimal.bytes(wantedHead) == nil {
            throw Options.UsageError(message: "--head requires a hash, as verify prints it")
        }
        keyFiles = options.all("key")
        (configuration, isNamed) = (ConfigurationPath.of(options), ConfigurationPath.isNamed(options))
        asJSON = options.has("json")
        registry = program.registry
    }

    func run() -> ExitCode {
        guard let keys = trustedKeys() else { return .configuration }
        var verifier = AuditVerifier(trusting: keys, wantedHead: wantedHead)
        for file in files {
            verifier.begin(file: file)
            if let reason = Self.read(file, into: &verifier) {
                Output.error("martlet audit: cannot read \(TerminalText.escaped(file)): \(reason)\n")
                return .unavailable
            }
        }
        let result = verifier.finish()
        if asJSON {
            Output.line(String(decoding: JSON.write(result.document), as: UTF8.self))
        } else {
            report(result)
        }
        if keys.isEmpty {
            Output.error(
                "martlet audit: warning: no trusted key is given, so whoever has written these lines may have signed "
                    + "them, too; use --key or --config\n")
        }
        return result.isGood ? .ok : .tampered
    }

    /// The keys of `--key`, otherwise that of the configuration; none if there is no configuration.
    /// - Returns: `nil` for a file without a key, which is reported.
    private func trustedKeys() -> [PublicKey]? {
        var keys: [PublicKey] = []
        for file in keyFiles {
            let secret = ConfigurationReader.secret(in: FilePath(file))
            guard let secret, let key = try? PublicKey(pem: secret), key.auditName != nil else {
                Output.error("martlet audit: \(TerminalText.escaped(file)) has no P-256 key\n")
                return nil
            }
            keys.append(key)
        }
        guard keyFiles.isEmpty else { return keys }
        let exists = unsafe access(configuration, R_OK) == 0
        guard isNamed || exists else { return [] }
        let (blueprint, diagnostics) = ConfigurationText.blueprint(configuration, registry)
        guard let blueprint else {
            Output.report(diagnostics)
            return nil
        }
        return [blueprint.audit?.key.publicKey].compactMap(\.self)
    }

    /// Reads a file line by line.
    /// - Returns: why it cannot be read; `nil` on success.
    private static func read(_ path: String, into verifier: inout AuditVerifier) -> String? {
        var splitter = LineSplitter(maximumBytes: AuditLine.maximumBytes)
        let failure = SystemFile.read(unsafe martlet_open_read(path)) { part in
            if !verifier.isDecided { splitter.add(part) { verifier.take($0) } }
            return !verifier.isDecided
        }
        if failure == nil, let rest = splitter.rest { verifier.take(rest, isTerminated: false) }
        return failure
    }

    private func report(_ result: AuditResult) {
        if let finding = result.finding {
            let position = finding.line > 0 ? "\(finding.file):\(finding.line)" : finding.file
            let hint = finding.problem.hint.map { " (\($0))" } ?? ""
            return Output.line("\(TerminalText.escaped(position)): \(finding.problem.rawValue)\(hint)")
        }
        var parts = ["ok: \(result.lines) lines, \(result.heads) heads"]
        if result.unsigned > 0 { parts.append("\(result.unsigned) lines behind the last head") }
        if result.torn > 0 { parts.append("\(result.torn) torn lines closed off") }
        if result.lost > 0 { parts.append("\(result.lost) events lost") }
        Output.line(parts.joined(separator: ", "))
        Output.line("last head: \(result.lastHead)\(result.isClosed ? "" : " (the log goes on)")")
    }

    static let grammar = CommandGrammar("audit", "Verify an audit log") { grammar in
        grammar.details = """
            Finds a removed, changed or reordered line of an audit log, and heads that were not signed by a trusted key. Several
            files are those of one log in their order, the oldest first.
            """
        grammar.subcommands = [
            CommandGrammar("verify", "Find a removed, changed or reordered line") { verify in
                verify.arguments = [.several("FILE", .file, upTo: maximumWords, "a file of the log")]
                verify.options = [
                    .value(
                        "key", "FILE", .file,
                        "a PEM file with the private or public P-256 key that signs the log; default: that of the "
                            + "configuration"
                    ).repeatable,
                    .value("head", "HASH", .text, "the hash of a head that must be there, such as the last known one"),
                    .json, .config,
                ]
            }
        ]
        grammar.example("martlet audit verify /var/log/martlet/audit.log", "with the key of the configuration")
        grammar.exits = [
            .ok: "the log is good", .tampered: "the first line that is wrong is printed, with its reason",
            .unavailable: "a file cannot be read",
            .configuration: "the configuration has errors, or a key file has no key",
        ]
    }
}
