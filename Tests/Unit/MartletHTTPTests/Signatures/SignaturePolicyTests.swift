import MartletCore
import Testing

@testable import MartletHTTP

@Suite struct SignaturePolicyTests {
    private static let now: Int64 = 1_800_000_000
    private static let all = "\"@method\" \"@authority\" \"@path\" \"@query\""

    private static func policy(requiresNonce: Bool = false) throws -> SignaturePolicy {
        SignaturePolicy(
            covers: try ["@method", "@authority", "@path", "@query"].map { try SignatureComponent(named: $0) },
            maximumAge: 60, requiresNonce: requiresNonce)
    }

    /// The end of acceptance, counted from now, or the code of the error.
    private static func check(
        _ components: String, _ parameters: String, hasBody: Bool = false, requiresNonce: Bool = false,
        now: Int64 = now
    ) throws -> String {
        let signature = try SignedRequests.signature("(\(components));keyid=\"k\"\(parameters)")
        let policy = try policy(requiresNonce: requiresNonce)
        do throws(MessageSignatureError) {
            let end = try policy.check(
                signature, algorithm: "ed25519", hasBody: hasBody, now: UnixTime(seconds: now))
            return String(end.seconds - now)
        } catch { return error.code.rawValue.replacing("signature.", with: "!") }
    }

    @Test(arguments: [
        (";created=1800000000", "60"), (";created=1799999940", "0"), (";created=1799999939", "!too_old"),
        (";created=1800000030", "90"), (";created=1800000031", "!in_future"), ("", "!created_missing"),
        (";expires=1800000010", "!created_missing"), (";created=-1", "!too_old"), (";created=0", "!too_old"),
        (";created=999999999999999", "!in_future"), (";created=-999999999999999", "!too_old"),
        (";created=1800000000;expires=1800000001", "1"), (";created=1800000000;expires=1800000000", "!expired"),
        (";created=1800000000;expires=1900000000", "60"), (";created=1800000000;expires=-1", "!expired"),
        (";created=1700000000;expires=1900000000", "!too_old"),
        (";created=1800000000;alg=\"ed25519\"", "60"), (";created=1800000000;alg=\"ED25519\"", "!alg_mismatch"),
        (";created=1800000000;alg=\"hmac-sha256\"", "!alg_mismatch"), (";created=1800000000;tag=\"t\"", "60"),
    ])
    func `limits times and the algorithm`(parameters: String, expected: String) throws {
        #expect(try Self.check(Self.all, parameters) == expected)
    }

    @Test(arguments: [
        ("\"@method\" \"@authority\" \"@path\" \"@query\" \"date\"", "60"),
        ("\"@query\" \"@path\" \"@authority\" \"@method\"", "60"),
        ("\"@method\" \"@authority\" \"@path\"", "!not_covered"),
        ("", "!not_covered"), ("\"@method\" \"@target-uri\"", "!not_covered"),
        ("\"@method\" \"@authority\" \"@path\" \"@query-param\";name=\"a\"", "!not_covered"),
        ("\"@method\" \"@authority\" \"@path\" \"query\"", "!not_covered"),
    ])
    func `requires components`(components: String, expected: String) throws {
        #expect(try Self.check(components, ";created=1800000000") == expected)
    }

    @Test func `requires the digest where there is a body`() throws {
        let created = ";created=1800000000"
        #expect(try Self.check(Self.all, created, hasBody: true) == "!digest_not_covered")
        #expect(try Self.check(Self.all + " \"content-digest\"", created, hasBody: true) == "60")
        #expect(try Self.check(Self.all + " \"content-digest\";bs", created, hasBody: true) == "!digest_not_covered")
        let member = " \"content-digest\";key=\"sha-256\""
        #expect(try Self.check(Self.all + member, created, hasBody: true) == "!digest_not_covered")
    }

    @Test func `requires a nonce where one is required`() throws {
        #expect(try Self.check(Self.all, ";created=1800000000", requiresNonce: true) == "!nonce_missing")
        #expect(try Self.check(Self.all, ";created=1800000000;nonce=\"n\"", requiresNonce: true) == "60")
    }

    @Test func `survives extreme clocks`() throws {
        for clock: Int64 in [.min, -1, 0, .max] {
            #expect(try Self.check(Self.all, ";created=1800000000", now: clock).hasPrefix("!"))
        }
    }
}
