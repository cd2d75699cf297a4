public import MartletConfig
internal import MartletCore
internal import MartletJSON
public import MartletProvider

/// API keys that an operator issues, kept as SHA-256 in the account store or in a file.
///
/// Clients present them as `Authorization: Bearer` or in `X-Api-Key`. Most are decided from memory; a change of a key
/// reaches every instance within a second.
public struct APIKeyProvider: Provider {
    /// The type of the provider's configuration block.
    public typealias Configuration = APIKeyConfiguration

    public static let kind: ProviderKind = "api_key"

    /// Where the keys are.
    enum Source: Sendable {
        case accounts(AccountKeys)
        case file(KeyFile)
    }

    /// How often changes are looked for; half of the second in which they have to be everywhere.
    static let pollInterval = Duration.milliseconds(400)
    /// After how many polls uses are stored: about a minute.
    static let pollsPerFlush = 150
    /// For how long event loops may reuse a decision, in seconds, so that uses are noticed.
    static let reuseSeconds: Int64 = 60
    /// The expiry of an identity whose key does not expire: the year 9999.
    static let never = UnixTime(seconds: 253_402_300_799)

    let context: ProviderContext
    let source: Source
    private let work = RepeatedWork()
    private let outage = KeyOutage()

    /// Warns about a file that does not exist; where it cannot be made either, that is an error.
    public static func validate(_ configuration: APIKeyConfiguration, into diagnostics: inout Diagnostics) {
        guard let file = configuration.file, file.value.file.wasMissing else { return }
        if let reason = FileProbe.creationError(file.value.file.path) {
            diagnostics.error(
                .configFileUnwritable, at: file.location, "keys_file: cannot make '\(file.value.file.path)': \(reason)")
            return
        }
        diagnostics.warning(
            .configFileUnreadable, at: file.location,
            "keys_file: there is no '\(file.value.file.path)' yet, so no key is accepted: martlet key create makes it")
    }

    public init(_ configuration: APIKeyConfiguration, context: ProviderContext) throws(ConfigurationError) {
        self.context = context
        if let file = configuration.file?.value.file {
            source = .file(file)
        } else {
            guard let keys = context.keys else {
                throw ConfigurationError(
                    .configMissingKey, at: configuration.location,
                    "provider '\(context.name)' stores its keys in a block 'accounts', or in a keys_file")
            }
            source = .accounts(AccountKeys(keys, clock: context.clock, maximumStale: configuration.maximumStale))
        }
    }
}

// MARK: - Verification

extension APIKeyProvider: LocallyVerifying {
    public var accepts: [CredentialSource] { [.bearerPrefix(APIKeyText.prefix), .header("X-Api-Key")] }

    /// Two digests and a look into a table.
    public var isQuick: Bool { true }

    /// Verifies a key that is known without asking the account store.
    public func verify(
        _ credential: Credential, in context: AuthenticationContext
    ) throws(AuthenticationError) -> LocalVerification {
        let key = try Self.key(credential)
        switch source {
        case .file(let file):
            return .authenticated(
                try identity(
                    FoundKey(record: file.table.keys[key.id], reusable: .seconds(Self.reuseSeconds)), key, context))
        case .accounts(let keys):
            guard let found = try keys.known(key.id) else { return .undecided }
            return .authenticated(try identity(found, key, context))
        }
    }

    /// Verifies a key, asking the account store if it is not known.
    public func authenticate(
        _ credential: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> Identity {
        if case .authenticated(let identity) = try verify(credential, in: context) { return identity }
        guard case .accounts(let keys) = source else { throw .rejected("api_key.unknown") }
        let key = try Self.key(credential)
        let found = try await keys.find(key.id, for: context.client?.workOwner ?? .anonymous)
        return try identity(found, key, context)
    }

    static func key(_ credential: Credential) throws(AuthenticationError) -> APIKeyText {
        do throws(APIKeyText.ParseError) {
            return try credential.withBytes { bytes throws(APIKeyText.ParseError) in try APIKeyText(bytes) }
        } catch {
            switch error {
            case .malformed: throw .rejected("api_key.malformed")
            case .checksum: throw .rejected("api_key.bad_checksum")
            }
        }
    }

    private func identity(
        _ found: FoundKey, _ key: APIKeyText, _ context: AuthenticationContext
    ) throws(AuthenticationError) -> Identity {
        guard let record = found.record else { throw .rejected("api_key.unknown") }
        let end: UnixTime?
        switch KeyDecision(record, key.digest, at: context.now) {
        case .accepted(let until): end = until
        case .rejected(let code): throw .rejected(code)
        }
        // Without an account store, no account can vouch for its subject.
        guard !record.isAccount || self.context.users != nil else { throw .rejected("api_key.no_accounts") }
        if case .accounts(let keys) = source { keys.noteUse(of: record.id, at: context.now) }
        var claims = record.claims
        claims["scope"] = .array(record.scopes.map { .string($0) })
        claims["key_id"] = .string(record.id)
        let reusable = min(found.reusable.wholeSeconds, Self.reuseSeconds)
        return Identity(
            providerSubject: record.subject, issuer: self.context.name, claims: claims, authTime: record.createdAt,
            issuedAt: record.rotatedAt ?? record.createdAt, expiresAt: end ?? Self.never,
            reusableUntil: context.now.advanced(bySeconds: reusable),
            subjectSource: record.isAccount ? .existingAccount : .provider)
    }
}

// MARK: - Following changes

extension APIKeyProvider: Running {
    /// Reads the state of the account store, and begins to follow its changes or those of the file.
    public func start() async {
        await follow()
        work.start(after: { Self.pollInterval }, { [self] in await follow() })
    }

    /// Stops following, and stores the last uses.
    public func shutdown() async {
        await work.stop()
        if case .accounts(let keys) = source { try? await keys.storeUses() }
    }

    /// Looks for changes once; uses are stored now and then.
    func follow() async {
        switch source {
        case .file(let file): follow(file)
        case .accounts(let keys):
            await follow(keys)
            guard outage.countPoll().isMultiple(of: Self.pollsPerFlush) else { return }
            do { try await keys.storeUses() } catch {
                context.logger.warning("uses of API keys not stored", ("code", error.code.rawValue))
            }
        }
    }

    private func follow(_ file: KeyFile) {
        let before = file.table
        switch file.refresh(now: context.clock.unixTime) {
        case .unchanged, .stillFailing: break
        case .changed:
            let table = file.table
            let keys = before.differences(to: table)
            invalidate(keys)
            context.logger.info(
                "keys file reloaded", ("file", file.path), ("keys", String(table.keys.count)),
                ("changed", String(keys.count)))
        case .failed(let reason):
            context.logger.warning(
                "keys file unusable, keeping the previous keys", ("file", file.path), ("reason", reason))
        }
    }

    private func follow(_ keys: AccountKeys) async {
        let poll = await keys.poll()
        switch poll {
        case .unchanged, .failed: break
        case .changed(let records): invalidate(records)
        case .reset:
            context.logger.warning("the account store was restored; all API keys are looked up again")
            context.invalidateDecisions()
        }
        var failure: StoreError?
        if case .failed(let error) = poll { failure = error }
        for line in outage.update(isFailing: failure != nil, isStale: keys.isStale) {
            switch line {
            case .began:
                context.logger.warning(
                    "changes of API keys cannot be read", ("code", failure?.code.rawValue ?? ""),
                    ("reason", failure?.message ?? ""))
            case .rejecting:
                context.logger.error(
                    "API keys rejected until their changes can be read", ("code", "api_key.store_unavailable"))
            case .ended: context.logger.info("changes of API keys are read again")
            }
        }
    }

    /// Has decisions about keys made again.
    private func invalidate(_ keys: [APIKeyRecord]) {
        let subjects = Set(keys.map { $0.isAccount ? $0.subject : context.subject($0.subject) })
        context.invalidateDecisions(of: subjects.sorted())
    }
}

extension APIKeyProvider: Reporting {
    public var health: ProviderHealth {
        func gauge(_ count: Int) -> ProviderHealth.Gauge {
            let help = "API keys in the file, or those in memory of the account store."
            return .init(name: "keys", help: help, kind: .gauge, value: Double(count))
        }
        switch source {
        case .file(let file):
            let failure = file.failure.map { ", file unusable: \($0)" } ?? ""
            let count = file.table.keys.count
            return ProviderHealth(
                state: failure.isEmpty ? .ready : .degraded, detail: "\(count) keys in '\(file.path)'\(failure)",
                gauges: [gauge(count)])
        case .accounts(let keys):
            let (state, detail): (ProviderHealth.State, String) =
                switch (keys.isStale, outage.isFailing) {
                case (true, _): (.unavailable, "keys rejected: their changes cannot be read")
                case (false, true): (.degraded, "changes of keys cannot be read at the moment")
                case (false, false): (.ready, "keys in the account store")
                }
            return ProviderHealth(state: state, detail: detail, gauges: [gauge(keys.count)])
        }
    }
}
