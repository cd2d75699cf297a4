import MartletAccounts
import MartletCore
import MartletEvents
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

// Part of two targets, like AccountRuleTests.

private let address = "ada@example.com"
private let lifetime = PasswordLinkLimits.lifetime.wholeSeconds

private typealias Origin = PasswordLinkRequest.Origin

private func linkRequest(
    _ purpose: PasswordLinkPurpose, _ digest: String, to address: String = address, from origin: Origin? = nil
) -> PasswordLinkRequest {
    let isReset = purpose == .reset
    return PasswordLinkRequest(
        purpose, provider: "password", address: address, digest: digest, claims: isReset ? [:] : ["name": "Ada"],
        mails: PasswordLinkRequest.Mails(
            user: ["for": "user", "of": .string(digest)],
            unproved: isReset ? ["for": "unproved", "of": .string(digest)] : nil,
            other: isReset ? nil : ["for": "other"]),
        from: origin ?? Origin(network: "n \(digest)", neighborhood: nil))
}

extension AccountStore {
    fileprivate func ask(
        _ purpose: PasswordLinkPurpose, _ digest: String, to recipient: String = address, from origin: Origin? = nil,
        at now: UnixTime = noon
    ) async throws -> PasswordLinkReceipt {
        try await request(linkRequest(purpose, digest, to: recipient, from: origin), at: now)
    }

    /// Uses a link, with a password of its own.
    fileprivate func register(with digest: String, at now: UnixTime = noon) async throws -> String? {
        try await register(with: digest, password: "$new \(digest)", at: ["password"], now: now)?.user
    }

    /// Uses a link.
    fileprivate func reset(with digest: String, to hash: String, at now: UnixTime = noon) async throws -> String? {
        try await reset(with: digest, to: hash, at: ["password"], now: now)?.user
    }
}

extension UserRecord {
    fileprivate static func ada(
        hash: String = "$old", isDisabled: Bool = false, provedAt: UnixTime? = nil
    ) -> UserRecord {
        UserRecord(name: address, key: address, hash: hash, isDisabled: isDisabled, provedAt: provedAt)
    }
}

@Suite(.timeLimit(.minutes(2))) struct AccountPasswordLinkTests {
    @Test func `a registration has no user before its link is used, and one after it`() async throws {
        try await withStores { stores in
            let store = stores[0]
            #expect(try await store.ask(.registration, "d1") == .accepted)
            #expect(try await store.user(address) == nil)
            #expect(try await store.linkProvider(of: "d1", for: .registration, at: noon) == "password")
            #expect(try await store.linkProvider(of: "d1", for: .reset, at: noon) == nil)
            #expect(try await store.linkProvider(of: "d2", for: .registration, at: noon) == nil)
            #expect(try await store.reset(with: "d1", to: "$x", at: noon) == nil)
            #expect(try await store.register(with: "d1", at: noon) == address)
            let user = try #require(try await store.record(for: address))
            #expect(
                user.hash == "$new d1" && user.claims == ["name": "Ada"] && !user.isDisabled && user.name == address)
            #expect(try await store.register(with: "d1", at: noon) == nil)
        }
    }

    @Test func `a link works once, whoever uses it at the same moment`() async throws {
        try await withStores(2) { stores in
            _ = try await stores[0].ask(.registration, "d1")
            let users = try await together(8) { try await stores[$0 % 2].register(with: "d1", at: noon) }
            #expect(users.compactMap(\.self) == [address])
            _ = try await stores[0].ask(.reset, "d2")
            let resets = try await together(8) { try await stores[$0 % 2].reset(with: "d2", to: "$\($0)", at: noon) }
            #expect(resets.compactMap(\.self) == [address])
        }
    }

    @Test func `a link expires`() async throws {
        try await withStores { stores in
            let store = stores[0]
            try await store.addUser(.ada(), at: noon)
            _ = try await store.ask(.reset, "d1")
            let (last, end) = (noon.advanced(bySeconds: lifetime - 1), noon.advanced(bySeconds: lifetime))
            #expect(try await store.linkProvider(of: "d1", for: .reset, at: last) == "password")
            #expect(try await store.linkProvider(of: "d1", for: .reset, at: end) == nil)
            #expect(try await store.reset(with: "d1", to: "$new", at: end) == nil)
            #expect(try await store.reset(with: "d1", to: "$new", at: last) == address)
            #expect(try await store.record(for: address)?.hash == "$new")
        }
    }

    @Test func `using a link ends the other ones of the address for the same purpose`() async throws {
        try await withStores { stores in
            let store = stores[0]
            _ = try await store.ask(.registration, "d1")
            _ = try await store.ask(.registration, "d2")
            _ = try await store.ask(.registration, "d3", to: "bob@example.com")
            #expect(try await store.register(with: "d2", at: noon) == address)
            #expect(try await store.register(with: "d1", at: noon) == nil)
            #expect(try await store.record(for: address)?.hash == "$new d2")
            #expect(try await store.register(with: "d3", at: noon) == "bob@example.com")
        }
    }

    @Test func `a registration's link does not replace a user who was added meanwhile`() async throws {
        try await withStores { stores in
            _ = try await stores[0].ask(.registration, "d1")
            try await stores[0].addUser(.ada(), at: noon)
            #expect(try await stores[0].register(with: "d1", at: noon) == nil)
            #expect(try await stores[0].record(for: address)?.hash == "$old")
        }
    }

    @Test func `a reset's link is void once the password was changed`() async throws {
        try await withStores { stores in
            let store = stores[0]
            try await store.addUser(.ada(), at: noon)
            _ = try await store.ask(.reset, "d1")
            try await store.setHash(of: address, to: "$other")
            #expect(try await store.reset(with: "d1", to: "$new", at: noon) == nil)
            #expect(try await store.record(for: address)?.hash == "$other")
        }
    }

    @Test(arguments: [true, false])
    func `a reset's link without a user, or for a disabled one, sets no password`(isUser: Bool) async throws {
        try await withStores { stores in
            let store = stores[0]
            if isUser { try await store.addUser(.ada(isDisabled: true), at: noon) }
            #expect(try await store.ask(.reset, "d1") == .accepted)
            if !isUser { try await store.addUser(.ada(), at: noon) }
            #expect(try await store.reset(with: "d1", to: "$new", at: noon) == nil)
            #expect(try await store.record(for: address)?.hash == "$old")
        }
    }

    @Test func `mails depend on the address`() async throws {
        try await withStores { stores in
            let store = stores[0]
            store.subscribe(
                EventSubscriptions([
                    .init(hook: "mails", patterns: [try #require(EventPattern("mail.*"))]),
                    .init(hook: "all", patterns: [try #require(EventPattern("*"))]),
                ]))
            func mails() async throws -> [JSONObject] {
                let page = try await store.entries(to: nil, in: nil, from: 0, limit: 100)
                #expect(page.entries.allSatisfy { $0.event.type == .mailRequested && $0.hook == "mails" })
                #expect(page.entries.allSatisfy { $0.event.subject == address })
                return page.entries.map(\.event.data)
            }
            _ = try await store.ask(.reset, "d1")
            #expect(try await mails().isEmpty)
            _ = try await store.ask(.registration, "d2")
            #expect(try await mails() == [["for": "other"]])
            try await store.addUser(.ada(isDisabled: true), at: noon)
            let later = noon.advanced(bySeconds: 3600)
            _ = try await store.ask(.reset, "d3", at: later)
            #expect(try await mails().count == 1)
            _ = try await store.ask(.registration, "d4", at: later)
            #expect(try await mails().last == ["for": "user", "of": "d4"])
            try await store.setDisabled(address, false)
            _ = try await store.ask(.reset, "d5", at: later)
            #expect(try await mails().last == ["for": "unproved", "of": "d5"])
            #expect(try await mails().count == 3)
        }
    }

    @Test func `an unproved user gets another mail`() async throws {
        try await withStores { stores in
            let store = stores[0]
            store.subscribe(
                EventSubscriptions([.init(hook: "mails", patterns: [try #require(EventPattern("mail.*"))])]))
            func last() async throws -> JSONObject? {
                try await store.entries(to: nil, in: nil, from: 0, limit: 100).entries.last?.event.data
            }
            try await store.addUser(.ada(), at: noon)
            _ = try await store.ask(.reset, "d1")
            #expect(try await last() == ["for": "unproved", "of": "d1"])
            try await store.setProved(address, at: noon)
            _ = try await store.ask(.reset, "d2")
            #expect(try await last() == ["for": "user", "of": "d2"])
        }
    }

    @Test func `a network causes three mails an hour to an address, known or not, a minute apart`() async throws {
        for isUser in [true, false] {
            try await withStores { stores in
                let store = stores[0]
                let (here, there) = (Origin(network: "a", neighborhood: "c"), Origin(network: "b", neighborhood: "d"))
                func ask(
                    _ purpose: PasswordLinkPurpose, after seconds: Int64, from origin: Origin, to: String = address
                ) async throws -> PasswordLinkReceipt {
                    let now = noon.advanced(bySeconds: seconds)
                    return try await store.ask(
                        purpose, "d\(seconds) \(origin.network) \(to)", to: to, from: origin, at: now)
                }
                if isUser { try await store.addUser(.ada(), at: noon) }
                #expect(try await ask(.reset, after: 0, from: here) == .accepted)
                #expect(try await ask(.reset, after: 59, from: here) == .withheld)
                // Whoever has just registered may have forgotten the password.
                #expect(try await ask(.registration, after: 58, from: here) == .accepted)
                #expect(try await ask(.reset, after: 60, from: here) == .accepted)
                #expect(try await ask(.reset, after: 600, from: here) == .withheld)
                // Neither another network nor another address has anything to do with it.
                #expect(try await ask(.reset, after: 600, from: there) == .accepted)
                #expect(try await ask(.reset, after: 600, from: here, to: "bob@example.com") == .accepted)
                #expect(try await ask(.reset, after: 3600, from: here) == .accepted)
                #expect(try await ask(.registration, after: 3601, from: here) == .withheld)
            }
        }
    }

    @Test func `neighbors share a limit, but not with a network that the user has logged in from`() async throws {
        try await withStores { stores in
            let store = stores[0]
            for number in 0..<12 {
                let origin = Origin(network: "n\(number)", neighborhood: "block")
                #expect(try await store.ask(.reset, "d\(number)", from: origin) == .accepted)
            }
            let next = try await store.ask(.reset, "d12", from: Origin(network: "n12", neighborhood: "block"))
            #expect(next == .withheld)
            let elsewhere = try await store.ask(.reset, "d13", from: Origin(network: "n13", neighborhood: "other"))
            #expect(elsewhere == .accepted)
            let known = try await store.ask(.reset, "d14", from: Origin(network: "n14", neighborhood: nil))
            #expect(known == .accepted)
        }
    }

    @Test func `concurrent requests get no further than sequential ones`() async throws {
        try await withStores(2) { stores in
            let origin = Origin(network: "a", neighborhood: "b")
            let receipts = try await together(12) { try await stores[$0 % 2].ask(.reset, "d\($0)", from: origin) }
            #expect(receipts.count { $0 == .accepted } == 1)
        }
    }

    @Test func `rejects what cannot be stored`() async throws {
        try await withStores { stores in
            for (digest, to) in [("", address), ("d", ""), ("d", "a\0"), ("d", String(repeating: "a", count: 2000))] {
                #expect(
                    await code { _ = try await stores[0].request(linkRequest(.reset, digest, to: to), at: noon) }
                        == .accountsTextInvalid)
            }
            let user = try await stores[0].register(with: "\0")
            #expect(user == nil)
        }
    }
}
