import MartletCore
import MartletCrypto
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

@testable import SignedProvider

/// A store that is unavailable.
private struct LostStore: SharedStoring {
    private static let outage = StoreError(code: "redis.not_connected", message: "no connection")

    func value(for key: String) async -> StoreReply<[UInt8]> { .unavailable(Self.outage) }
    func set(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) { throw Self.outage }
    func setIfAbsent(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) -> Bool {
        throw Self.outage
    }
    func remove(_ key: String, ifEqualTo value: [UInt8]) async throws(StoreError) { throw Self.outage }
    func remove(_ key: String) async throws(StoreError) { throw Self.outage }
    func take(_ key: String) async -> StoreReply<[UInt8]> { .unavailable(Self.outage) }
    func increment(_ key: String, lifetime: Duration) async throws(StoreError) -> CounterReading { throw Self.outage }
    func counter(_ key: String) async throws(StoreError) -> CounterReading { throw Self.outage }
}

@Suite struct `Signed requests` {
    private static let digest = "sha-256=:\(Base64.encode(SHA256.digest(Array("{}".utf8)), padding: .required)):"

    @Test func `give the key's subject and claims, and are reused for no other request`() async throws {
        let request = Bench.signed()
        let identity = try await Bench.provider().authenticate(request.credential, in: request.context())
        #expect(identity.providerSubject == "acme" && identity.subjectSource == .provider)
        #expect(identity.claims["tier"] == .string("gold") && identity.claims["key_id"] == .string("acme"))
        #expect(identity.issuedAt == Bench.now && identity.bodyDigest == nil)
        guard case .authenticated(let local) = try Bench.provider().verify(request.credential, in: request.context())
        else { throw TestFailure("undecided") }
        #expect(local.providerSubject == "acme")
        #expect(try ProviderHandle(Bench.provider(), name: "partner").scoped(identity).reusableUntil < Bench.now)
    }

    @Test func `are rejected where something differs from what was signed`() async throws {
        let changes: [(String, (inout Bench.Request) -> Void)] = [
            ("method", { $0.method = "PUT" }), ("authority", { $0.authority = "evil.example" }),
            ("path", { $0.path = "/other" }), ("query", { $0.query = "a=2" }), ("no query", { $0.query = nil }),
            ("a body", { $0.hasBody = true }), ("another signature", { $0.fields[1].1 = "sig=:AAAA:" }),
            ("another label", { $0.fields[1].1 = $0.fields[1].1.replacing("sig=", with: "gis=") }),
            ("an old time", { $0.fields[0].1 = $0.fields[0].1.replacing("1800000000", with: "1799999999") }),
            ("no signature", { $0.fields.remove(at: 1) }),
        ]
        for (what, change) in changes {
            var request = Bench.signed()
            change(&request)
            #expect(await Bench.outcome(of: request, by: try Bench.provider()).hasSuffix(" rejected"), "\(what)")
        }
    }

    @Test func `are rejected with the reason`() async throws {
        let provider = try Bench.provider()
        func outcome(_ parameters: String, key: [UInt8] = Bench.secret) async -> String {
            await Bench.outcome(of: Bench.signed(parameters: parameters, key: key), by: provider)
        }
        #expect(await outcome(#";created=1800000000;keyid="other""#) == "signature.unknown_key rejected")
        #expect(await outcome(Bench.parameters, key: [UInt8](repeating: 8, count: 32)) == "signature.invalid rejected")
        #expect(await outcome(#";keyid="acme""#) == "signature.created_missing rejected")
        #expect(await outcome(#";created=1799999900;keyid="acme""#) == "signature.too_old rejected")
        #expect(await outcome(#";created=1800000100;keyid="acme""#) == "signature.in_future rejected")
        #expect(await outcome(#";created=1800000000;alg="ed25519";keyid="acme""#) == "signature.alg_mismatch rejected")
    }

    @Test func `with two labels are ambiguous`() async throws {
        var request = Bench.signed()
        request.fields[0].1 += ", other=()"
        #expect(await Bench.outcome(of: request, by: try Bench.provider()) == "signature.repeated malformed")
    }

    @Test func `have to cover what the policy says`() async throws {
        let provider = try Bench.provider(Bench.block + "\ncovers: [\"@method\", \"x-account\"]")
        #expect(await Bench.outcome(of: Bench.signed(), by: provider) == "signature.not_covered rejected")
        let covered = Bench.signed(more: [("x-account", "7")])
        #expect(await Bench.outcome(of: covered, by: provider) == "acme")
        var twice = covered
        twice.fields.append(("x-account", "8"))
        #expect(await Bench.outcome(of: twice, by: provider) == "signature.invalid rejected")
    }

    @Test func `vouch for a body by its digest`() async throws {
        let request = Bench.signed(Bench.Request(hasBody: true), more: [("content-digest", Self.digest)])
        let identity = try await Bench.provider().authenticate(request.credential, in: request.context())
        #expect(identity.bodyDigest == BodyDigest(sha256: SHA256.digest(Array("{}".utf8))))
        #expect(identity.reusableUntil < Bench.now)
        let unknown = Bench.signed(Bench.Request(hasBody: true), more: [("content-digest", "md5=:AAAA:")])
        #expect(
            await Bench.outcome(of: unknown, by: try Bench.provider()) == "digest.unknown_algorithm malformed")
        // A digest that is not covered may be from anyone.
        var added = Bench.signed()
        added.fields.append(("content-digest", "sha-256=:AAAA:"))
        #expect(await Bench.outcome(of: added, by: try Bench.provider()) == "acme")
    }

    @Test func `use up a nonce once, however often their request is verified`() async throws {
        let provider = try Bench.provider()
        var request = Bench.signed(parameters: #";created=1800000000;keyid="acme";nonce="n1""#)
        request.id = Array("1".utf8)
        for _ in 0..<3 { #expect(await Bench.outcome(of: request, by: provider) == "acme") }
        for other in ["2", "", "1"] {
            request.id = Array(other.utf8)
            let outcome = await Bench.outcome(of: request, by: provider)
            #expect(outcome == (other == "1" ? "acme" : "signature.replayed rejected"))
        }
    }

    @Test func `use up a nonce once, and only with the key`() async throws {
        let provider = try Bench.provider()
        let parameters = #";created=1800000000;keyid="acme";nonce="n1""#
        let forged = Bench.signed(parameters: parameters, key: [UInt8](repeating: 8, count: 32))
        #expect(await Bench.outcome(of: forged, by: provider) == "signature.invalid rejected")
        let request = Bench.signed(parameters: parameters)
        // On a loop it is not decided: the store has to be asked.
        guard case .undecided = try provider.verify(request.credential, in: request.context()) else {
            throw TestFailure("decided without the store")
        }
        #expect(await Bench.outcome(of: request, by: provider) == "acme")
        #expect(await Bench.outcome(of: request, by: provider) == "signature.replayed rejected")
        #expect(
            await Bench.outcome(
                of: Bench.signed(parameters: #";created=1800000000;keyid="acme";nonce="n2""#), by: provider) == "acme")
    }

    @Test func `in long heads are not verified on a loop`() async throws {
        let provider = try Bench.provider()
        for (count, isQuick) in [(1000, true), (8000, false)] {
            let padding = ("x-padding", String(repeating: "a", count: count))
            let request = Bench.signed(Bench.Request(fields: [padding]))
            switch try provider.verify(request.credential, in: request.context()) {
            case .authenticated: #expect(isQuick)
            case .undecided: #expect(!isQuick)
            }
            #expect(await Bench.outcome(of: request, by: provider) == "acme")
        }
    }

    @Test func `need a nonce where the provider or the key says so`() async throws {
        let missing = "signature.nonce_missing rejected"
        #expect(
            await Bench.outcome(of: Bench.signed(), by: try Bench.provider(Bench.block + "\nnonce: required"))
                == missing)
        let own = Bench.block.replacing("subject: acme", with: "subject: acme, nonce: required")
        #expect(await Bench.outcome(of: Bench.signed(), by: try Bench.provider(own)) == missing)
        let relaxed = Bench.block.replacing("subject: acme", with: "subject: acme, nonce: optional")
        #expect(
            await Bench.outcome(of: Bench.signed(), by: try Bench.provider(relaxed + "\nnonce: required")) == "acme")
    }

    @Test func `of one key that sends too many nonces are refused, and no other's`() async throws {
        let store = MemoryStore(clock: Bench.clock)
        let secret = Base64.encode(Bench.secret, padding: .required)
        let keys = Bench.block.replacing(
            "keys:", with: "keys:\n  other: { algorithm: hmac-sha256, secret: \(secret), subject: o }")
        let provider = try Bench.provider(keys, store: store)
        func request(_ key: String, _ nonce: Int) -> Bench.Request {
            Bench.signed(parameters: #";created=1800000000;keyid="\#(key)";nonce="\#(nonce)""#)
        }
        let marks = store.partition(.signatures, for: WorkOwner(named: "acme"))
        for number in 0..<12_500 { try await marks.set([1], for: "\(number)", lifetime: .seconds(60)) }
        #expect(await Bench.outcome(of: request("acme", 1), by: provider) == "store.share_used_up throttled")
        #expect(await Bench.outcome(of: request("other", 1), by: provider) == "o")
    }

    @Test func `with a nonce are unavailable while the store is`() async throws {
        let provider = try Bench.provider(store: LostStore())
        let request = Bench.signed(parameters: #";created=1800000000;keyid="acme";nonce="n1""#)
        #expect(await Bench.outcome(of: request, by: provider) == "signature.store_unavailable unavailable")
        #expect(await Bench.outcome(of: Bench.signed(), by: provider) == "acme")
    }

    @Test func `are explained without using up the nonce`() async throws {
        let provider = try Bench.provider()
        let request = Bench.signed(parameters: #";created=1800000000;keyid="acme";nonce="n1""#)
        let checks = await provider.explain(request.credential, in: request.context())
        #expect(checks.map(\.failure) == [nil] && checks.first?.detail.contains("key 'acme'") == true)
        #expect(await Bench.outcome(of: request, by: provider) == "acme")
        let other = Bench.signed(parameters: #";created=1800000000;keyid="other""#)
        #expect(
            await provider.explain(other.credential, in: other.context()).map(\.failure) == ["signature.unknown_key"])
    }
}
