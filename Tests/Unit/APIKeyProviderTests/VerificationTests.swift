import MartletConfig
import MartletCore
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

@testable import APIKeyProvider

@Suite struct `API keys of the account store` {
    @Test func `prove their subject, with claims, scopes and their id`() async throws {
        let bench = try Bench()
        let (record, key) = try await bench.issue()
        let identity = try await bench.identity(key)
        #expect(identity.providerSubject == "billing" && identity.issuer == "partners")
        #expect(
            identity.claims == ["role": "partner", "scope": ["read", "write"], "key_id": .string(record.id)])
        #expect(identity.authTime == bench.time.now && identity.issuedAt == bench.time.now)
        #expect(identity.expiresAt == APIKeyProvider.never && identity.subjectSource == .provider)
        // Before the store is followed, every request asks.
        #expect(identity.reusableUntil == bench.time.now)
        let (_, other) = try await bench.issue("usr_1", isAccount: true)
        #expect(try await bench.identity(other).subjectSource == .existingAccount)
    }

    @Test func `are kept as digests`() async throws {
        let bench = try Bench()
        let (record, key) = try await bench.issue()
        #expect(try await bench.store.key(record.id) == record)
        #expect(record.digest == (try APIKeyText(Array(key.utf8))).digest && key.contains(record.id))
    }

    @Test func `are looked up once, and then known`() async throws {
        let bench = try Bench()
        let (record, key) = try await bench.issue()
        await bench.provider.follow()
        #expect(bench.local(key) == "undecided")
        #expect(await bench.result(key) == "billing")
        #expect(bench.local(key) == "billing")
        #expect(await bench.result(key) == "billing")
        #expect(bench.store.lookups.value == [record.id])
        #expect(try await bench.identity(key).reusableUntil == bench.time.now.advanced(bySeconds: 30))
    }

    @Test func `are rejected by the reason`() async throws {
        let bench = try Bench()
        await bench.provider.follow()
        let (record, key) = try await bench.issue(expiresAt: bench.time.now.advanced(bySeconds: 10))
        let wrong = bench.text(of: try APIKeyText.make(id: record.id).text)
        let unknown = bench.text(of: try APIKeyText.make().text)
        #expect(await bench.result(key) == "billing")
        #expect(await bench.result(wrong) == "api_key.wrong_secret")
        #expect(await bench.result(unknown) == "api_key.unknown")
        #expect(bench.local(unknown) == "api_key.unknown")
        #expect(bench.local("mak_x") == "api_key.malformed")
        #expect(bench.local(String(key.dropLast(1)) + (key.hasSuffix("0") ? "1" : "0")) == "api_key.bad_checksum")
        #expect(try await bench.identity(key).expiresAt == bench.time.now.advanced(bySeconds: 10))
        bench.time.pass(10)
        #expect(bench.local(key) == "api_key.expired")
        // A made-up id is looked up once, a broken key never.
        #expect(bench.store.lookups.value.count == 2)
    }

    @Test func `are rejected once a revocation was noticed, and decisions about them made again`() async throws {
        let bench = try Bench()
        await bench.provider.follow()
        let (record, key) = try await bench.issue()
        let (account, _) = try await bench.issue("usr_1", isAccount: true)
        #expect(await bench.result(key) == "billing")
        await bench.provider.follow()
        bench.invalidated.withLock { $0 = [] }
        for id in [record.id, account.id] { _ = try await bench.store.revoke(id, at: bench.time.now) }
        await bench.provider.follow()
        #expect(bench.local(key) == "api_key.revoked")
        #expect(bench.invalidated.value == ["partners:billing", "usr_1"])
        await bench.provider.follow()
        #expect(bench.invalidated.value.count == 2)
    }

    @Test func `are rejected where the revocation came during the lookup`() async throws {
        let bench = try Bench()
        await bench.provider.follow()
        let (record, key) = try await bench.issue()
        await bench.provider.follow()
        bench.store.interference.withLock { interference in
            interference = {
                _ = try? await bench.store.revoke(record.id, at: bench.time.now)
                await bench.provider.follow()
            }
        }
        let identity = try await bench.identity(key)
        // The decision is void by the invalidation, and nothing of it stays.
        #expect(identity.reusableUntil == bench.time.now && bench.invalidated.value.last == "partners:billing")
        #expect(await bench.result(key) == "api_key.revoked")
    }

    @Test func `are replaced with a grace period`() async throws {
        let bench = try Bench()
        await bench.provider.follow()
        let (record, old) = try await bench.issue()
        #expect(await bench.result(old) == "billing")
        bench.time.pass(5)
        let issued = try #require(try await bench.provider.rotate(record.id, grace: .seconds(60)))
        let new = bench.text(of: issued.key)
        #expect(issued.record.id == record.id && new != old)
        await bench.provider.follow()
        let (identity, previous) = (try await bench.identity(new), try await bench.identity(old))
        #expect(identity.issuedAt == bench.time.now && identity.authTime == record.createdAt)
        #expect(identity.expiresAt == APIKeyProvider.never)
        #expect(previous.expiresAt == bench.time.now.advanced(bySeconds: 60))
        bench.time.pass(60)
        await bench.provider.follow()
        #expect(bench.local(old) == "api_key.replaced" && bench.local(new) == "billing")
        #expect(try await bench.provider.rotate("0011223344556677", grace: .zero) == nil)
        _ = try await bench.provider.rotate(record.id, grace: .zero)
        await bench.provider.follow()
        #expect(bench.local(new) == "api_key.wrong_secret")
    }

    @Test func `are unavailable when changes cannot be read for too long, and again available after that`() async throws
    {
        let bench = try Bench()
        let (_, key) = try await bench.issue()
        await bench.provider.follow()
        #expect(await bench.result(key) == "billing")
        bench.store.isBroken.withLock { $0 = true }
        bench.time.pass(20)
        await bench.provider.follow()
        #expect(await bench.result(key) == "billing")
        #expect(try await bench.identity(key).reusableUntil == bench.time.now.advanced(bySeconds: 10))
        #expect(bench.provider.health.state == .degraded)
        bench.time.pass(10)
        await bench.provider.follow()
        await bench.provider.follow()
        #expect(await bench.result(key) == "api_key.store_unavailable")
        #expect(bench.local(key) == "api_key.store_unavailable")
        #expect(bench.provider.health.state == .unavailable)
        bench.store.isBroken.withLock { $0 = false }
        await bench.provider.follow()
        #expect(bench.local(key) == "billing" && bench.provider.health.state == .ready)
        #expect(
            bench.log.texts == [
                "warning changes of API keys cannot be read code=accounts.unavailable reason=the keys are unavailable",
                "error API keys rejected until their changes can be read code=api_key.store_unavailable",
                "info changes of API keys are read again",
            ])
    }

    @Test func `that are not known need the store`() async throws {
        let bench = try Bench()
        let (_, key) = try await bench.issue()
        await bench.provider.follow()
        bench.store.isBroken.withLock { $0 = true }
        await #expect {
            try await bench.identity(key)
        } throws: { error in
            let error = error as? AuthenticationError
            return error?.code == "api_key.store_unavailable" && error?.disposition == .unavailable
        }
    }

    @Test func `are all looked up again after the store was restored`() async throws {
        let bench = try Bench()
        let (record, key) = try await bench.issue()
        await bench.provider.follow()
        #expect(await bench.result(key) == "billing")
        bench.store.restore(version: 0)
        await bench.provider.follow()
        #expect(bench.invalidated.value == ["*"] && bench.local(key) == "undecided")
        #expect(await bench.result(key) == "billing" && bench.store.lookups.value == [record.id, record.id])
    }

    @Test func `many changes are followed page by page`() async throws {
        let bench = try Bench()
        await bench.provider.follow()
        bench.store.pageSize.withLock { $0 = 2 }
        for index in 0..<5 { _ = try await bench.issue("s\(index)") }
        await bench.provider.follow()
        #expect(bench.invalidated.value == (0..<5).map { "partners:s\($0)" })
    }

    @Test func `note their uses, which are stored now and then and at the end`() async throws {
        let bench = try Bench()
        let (record, key) = try await bench.issue()
        await bench.provider.follow()
        #expect(await bench.result(key) == "billing")
        for _ in 0..<(APIKeyProvider.pollsPerFlush - 2) { await bench.provider.follow() }
        #expect(try await bench.store.key(record.id)?.lastUsedAt == nil)
        await bench.provider.follow()
        #expect(try await bench.store.key(record.id)?.lastUsedAt == bench.time.now)
        bench.time.pass(3)
        #expect(await bench.result(key) == "billing")
        await bench.provider.shutdown()
        #expect(try await bench.store.key(record.id)?.lastUsedAt == bench.time.now)
        // A key that was rejected was not used.
        #expect(await bench.result(bench.text(of: try APIKeyText.make(id: record.id).text)) == "api_key.wrong_secret")
    }

    @Test func `are explained`() async throws {
        let bench = try Bench()
        let (record, key) = try await bench.issue()
        func explain(_ key: String) async -> [String] {
            await bench.provider.explain(Credential(bearer: Array(key.utf8)), in: bench.context).map {
                "\($0.check) \($0.failure.map { "\($0)" } ?? "ok") \($0.detail)"
            }
        }
        #expect(await explain(key) == ["form ok key \(record.id)", "key ok of billing, does not expire"])
        _ = try await bench.store.revoke(record.id, at: bench.time.now)
        #expect(await explain(key) == ["form ok key \(record.id)", "key api_key.revoked "])
        #expect(await explain("mak_") == ["form api_key.malformed "])
    }

    @Test func `follow the store by themselves`() async throws {
        let bench = try Bench()
        let (record, key) = try await bench.issue()
        await bench.provider.start()
        #expect(await bench.result(key) == "billing")
        _ = try await bench.store.revoke(record.id, at: bench.time.now)
        try await eventually("the key is revoked") { bench.local(key) == "api_key.revoked" }
        await bench.provider.shutdown()
    }
}

@Suite struct `The block of API keys` {
    private func errors(_ yaml: [String], hasAccounts: Bool = true) throws -> [String] {
        var diagnostics = Diagnostics()
        guard Bench.configuration(yaml, into: &diagnostics) != nil, !diagnostics.hasErrors else {
            return diagnostics.all.map { "\($0)" }
        }
        do { _ = try Bench(yaml, hasAccounts: hasAccounts) } catch { return ["\(error)"] }
        return diagnostics.all.map { "\($0)" }
    }

    @Test func `needs an account store or a file`() throws {
        #expect(try errors(["{}"]).isEmpty)
        #expect(try errors(["max_stale: 30s"], hasAccounts: false).first?.contains("keys_file") == true)
    }

    @Test(arguments: ["max_stale: 1s", "max_stale: 2h", "keys: x", "max_stale: soon"])
    func `rejects`(line: String) throws {
        #expect(try !errors([line]).isEmpty)
    }
}
