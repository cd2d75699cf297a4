public import MartletCore
public import MartletProvider

/// What the gateway expects of every provider, as a suite that a provider runs in its own tests.
///
/// ```swift
/// var conformance = ProviderConformance(clock: clock) { try LineProvider(configuration, context: context) }
/// conformance.accepted = [Credential(bearer: Array(token.utf8))]
/// let report = await conformance.run()
/// #expect(report.passes, "\(report)")
/// ```
public struct ProviderConformance<Plugin: Provider>: Sendable {
    /// The time by which the credentials are valid: the clock of the provider's context.
    let clock: Clock
    let make: @Sendable () throws -> Plugin
    /// Credentials that are valid, and may be used more than once.
    public var accepted: [Credential] = []
    /// Credentials that are not valid, whatever the reason.
    public var rejected: [Credential] = []
    /// Bodies of logins that are valid, and may be used more than once.
    public var forms: [SignInForm] = []
    /// Makes an instance whose services fail: its issuer, its store, whatever it depends on; `nil` if it has none.
    public var makeUnavailable: (@Sendable () throws -> Plugin)?
    /// All that the provider has logged; `nil` if it cannot be seen.
    public var log: (@Sendable () -> String)?
    /// Whether a valid credential with another byte is another one. False for providers that ask a simulated service
    /// which accepts everything.
    public var verifiesBytes = true
    /// The request that a credential comes with, for providers that are `RequestInspecting`.
    public var request: @Sendable (Credential) -> RequestFacts = { _ in
        RequestFacts(method: "GET", host: "api.example.com", path: "/")
    }
    /// How many random credentials are tried.
    public var randomCount = 10_000
    /// How long a call may take, in real time, before it counts as hanging.
    public var timeout = Duration.seconds(10)

    /// - Parameters:
    ///   - clock: that of the provider's context.
    ///   - make: makes an instance whose services work; called several times.
    public init(clock: Clock, make: @escaping @Sendable () throws -> Plugin) {
        self.clock = clock
        self.make = make
    }

    /// Runs every check that the provider's capabilities allow.
    public func run() async -> ConformanceReport {
        var report = ConformanceReport()
        let provider: Plugin
        do { provider = try make() } catch {
            report.add(.accepts, "it cannot be made: \(error)")
            return report
        }
        await (provider as? any Running)?.start()
        if let authenticating = provider as? any Authenticating {
            await runCredentials(of: authenticating, &report)
            await runReload(&report)
        }
        if let signingIn = provider as? any SigningIn, signingIn.acceptsSignIn {
            await runForms(of: signingIn, &report)
        }
        await (provider as? any Running)?.shutdown()
        await runUnavailable(&report)
        checkLog(&report)
        return report
    }

    // MARK: Credentials

    private func runCredentials(
        of provider: any Authenticating, _ report: inout ConformanceReport
    ) async {
        for credential in accepted { await accept(credential, by: provider, .accepts, &report) }
        for credential in rejected { await reject(credential, by: provider, .rejects, &report) }
        for source in provider.accepts {
            for bytes in HostileBytes.all(for: source) {
                await reject(source.credential(bytes), by: provider, .hostile, &report)
            }
        }
        var random = SeededGenerator(seed: 0x4D61_7274_6C65_7431)
        for index in 0..<randomCount {
            guard let source = provider.accepts.isEmpty ? nil : provider.accepts[index % provider.accepts.count] else {
                break
            }
            let bytes = HostileBytes.random(for: source, using: &random)
            await reject(source.credential(bytes), by: provider, .random, &report)
        }
        if verifiesBytes { await runChanged(by: provider, &random, &report) }
        await runConcurrency(of: provider, &report)
        await runLimits(of: provider, &report)
    }

    /// One byte of each valid credential is replaced, at up to 64 places.
    private func runChanged(
        by provider: any Authenticating, _ random: inout SeededGenerator, _ report: inout ConformanceReport
    ) async {
        for credential in accepted {
            let bytes = credential.withBytes { $0 }
            guard !bytes.isEmpty else { continue }
            for step in 0..<min(64, bytes.count) {
                var changed = bytes
                let index = step * bytes.count / min(64, bytes.count)
                // Another letter: what is not in the alphabet at all is among the hostile bytes.
                let letters = Array("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789".utf8)
                    .filter { $0 != bytes[index] }
                changed[index] = letters[Int(random.next() % UInt64(letters.count))]
                await reject(credential.scheme.credential(changed), by: provider, .changed, &report)
            }
        }
    }

    private func runConcurrency(of provider: any Authenticating, _ report: inout ConformanceReport) async {
        guard let credential = accepted.first else { return }
        let results = await withTaskGroup(of: String.self) { group in
            for _ in 0..<64 {
                group.addTask { await self.outcome(of: credential, by: provider).subject ?? "no identity" }
            }
            return await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        for _ in 0..<64 { report.count(.concurrency) }
        if results.count != 1 || results.contains("no identity") {
            report.add(.concurrency, "64 calls at the same time gave \(results.count) results")
        }
    }

    /// Calls whose deadline has passed, and calls that are cancelled.
    private func runLimits(of provider: any Authenticating, _ report: inout ConformanceReport) async {
        guard let credential = accepted.first else { return }
        report.count(.deadline)
        let late = context(of: credential, deadline: MonotonicTime(nanoseconds: clock.monotonicTime.nanoseconds &- 1))
        if await outcome(of: credential, by: provider, in: late).hangs { report.add(.deadline, "it does not return") }
        report.count(.cancellation)
        let context = context(of: credential)
        let task = Task { try? await provider.authenticate(credential, in: context) }
        task.cancel()
        if await waits(for: { _ = await task.value }) { report.add(.cancellation, "it does not return") }
    }

    private func runReload(_ report: inout ConformanceReport) async {
        report.count(.reload)
        do {
            let (old, new) = (try make(), try make())
            await (old as? any Running)?.start()
            await (new as? any Running)?.start()
            await (old as? any Running)?.shutdown()
            if let authenticating = new as? any Authenticating {
                for credential in accepted { await accept(credential, by: authenticating, .reload, &report) }
            }
            await (new as? any Running)?.shutdown()
        } catch {
            report.add(.reload, "a second instance cannot be made: \(error)")
        }
    }

    private func runUnavailable(_ report: inout ConformanceReport) async {
        guard let makeUnavailable else { return }
        do {
            let provider = try makeUnavailable()
            await (provider as? any Running)?.start()
            if let authenticating = provider as? any Authenticating {
                for credential in accepted {
                    report.count(.unavailable)
                    let outcome = await outcome(of: credential, by: authenticating)
                    guard outcome.error?.disposition != .unavailable else { continue }
                    report.add(.unavailable, "a valid credential gives \(outcome), not an outage")
                }
            }
            if let signingIn = provider as? any SigningIn, signingIn.acceptsSignIn {
                for form in forms {
                    report.count(.unavailable)
                    let outcome = await outcome(of: form, by: signingIn)
                    guard outcome.error?.disposition != .unavailable else { continue }
                    report.add(.unavailable, "a valid login gives \(outcome), not an outage")
                }
            }
            await (provider as? any Running)?.shutdown()
        } catch {
            report.add(.unavailable, "the instance cannot be made: \(error)")
        }
    }

    private func accept(
        _ credential: Credential, by provider: any Authenticating, _ check: ConformanceReport.Check,
        _ report: inout ConformanceReport
    ) async {
        report.count(check)
        let outcome = await outcome(of: credential, by: provider)
        guard case .identity(let identity) = outcome else {
            return report.add(check, "a valid credential gives \(outcome)")
        }
        for reason in IdentityRules.violations(of: identity, at: clock.unixTime) { report.add(check, reason) }
        guard let local = provider as? any LocallyVerifying else { return }
        do throws(AuthenticationError) {
            guard case .authenticated(let other) = try local.verify(credential, in: context(of: credential)) else {
                return
            }
            if other.providerSubject != identity.providerSubject { report.add(check, "verify gives another subject") }
        } catch {
            report.add(check, "verify rejects what authenticate accepts: \(error)")
        }
    }

    private func reject(
        _ credential: Credential, by provider: any Authenticating, _ check: ConformanceReport.Check,
        _ report: inout ConformanceReport
    ) async {
        report.count(check)
        let outcome = await outcome(of: credential, by: provider)
        let shown = credential.withBytes { ConformanceText.shown($0) }
        switch outcome {
        case .error(let error) where [.rejected, .denied, .throttled, .malformed].contains(error.disposition): break
        // A provider of a service says so where the service would have to know; the simulated one does not have to.
        case .error(let error) where error.disposition == .unavailable && check != .rejects: break
        default: report.add(check, "\(shown) gives \(outcome)")
        }
        if case .error(let error) = outcome, credential.isRevealed(by: error) {
            report.add(.redaction, "the error contains the credential \(shown)")
        }
        guard let local = provider as? any LocallyVerifying else { return }
        if case .authenticated? = try? local.verify(credential, in: context(of: credential)) {
            report.add(check, "verify accepts \(shown)")
        }
    }

    // MARK: Bodies

    private func runForms(of provider: any SigningIn, _ report: inout ConformanceReport) async {
        for form in forms {
            report.count(.signIn)
            let outcome = await outcome(of: form, by: provider)
            guard case .identity(let identity) = outcome else {
                report.add(.signIn, "a valid login gives \(outcome)")
                continue
            }
            for reason in IdentityRules.violations(of: identity, at: nil) { report.add(.signIn, reason) }
        }
        for (name, form) in HostileForms.all {
            report.count(.signIn)
            let outcome = await outcome(of: form, by: provider)
            if case .error(let error) = outcome, error.disposition != .notFound { continue }
            report.add(.signIn, "a body with \(name) gives \(outcome)")
        }
    }

    // MARK: Calls

    private func context(
        of credential: Credential? = nil, deadline: MonotonicTime? = nil,
        purpose: AuthenticationContext.Purpose = .request
    ) -> AuthenticationContext {
        AuthenticationContext(
            now: clock.unixTime, deadline: deadline ?? clock.monotonicTime + .seconds(10),
            client: ClientNetwork(address: [0x20, 0x01, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 12)),
            purpose: purpose, request: credential.map(request))
    }

    private func outcome(
        of credential: Credential, by provider: any Authenticating, in context: AuthenticationContext? = nil
    ) async -> ConformanceOutcome {
        let context = context ?? self.context(of: credential)
        return await limited { () async throws(AuthenticationError) in
            try await provider.authenticate(credential, in: context)
        }
    }

    private func outcome(of form: SignInForm, by provider: any SigningIn) async -> ConformanceOutcome {
        let context = context(purpose: .login)
        return await limited { () async throws(AuthenticationError) in
            try await provider.signIn(with: form, in: context).identity
        }
    }

    private func limited(
        _ call: @escaping @Sendable () async throws(AuthenticationError) -> Identity
    ) async -> ConformanceOutcome {
        // Not a child of this task: one that never returns must not hold up the suite.
        let result = OnceOnly<ConformanceOutcome>()
        let task = Task {
            do throws(AuthenticationError) { result.complete(.identity(try await call())) } catch {
                result.complete(.error(error))
            }
        }
        guard let outcome = await result.value(within: timeout) else {
            task.cancel()
            return .hanging
        }
        return outcome
    }

    /// Whether something has not ended in time.
    private func waits(for work: @escaping @Sendable () async -> Void) async -> Bool {
        let result = OnceOnly<Bool>()
        Task {
            await work()
            result.complete(true)
        }
        return await result.value(within: timeout) == nil
    }

    private func checkLog(_ report: inout ConformanceReport) {
        guard let text = log?() else { return }
        for credential in accepted {
            report.count(.redaction)
            let secret = credential.withBytes { String(decoding: $0, as: UTF8.self) }
            if secret.utf8.count >= 8, text.contains(secret) {
                report.add(.redaction, "the log has a valid credential")
            }
        }
    }
}
