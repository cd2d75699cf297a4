import AppleProvider
import Dispatch
import MartletConfig
import MartletCore
import MartletCrypto
import MartletJOSE
import MartletJSON
import MartletProvider

/// The first byte chooses: the rest is a token as a client would send it, or claims that a good key signs.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    guard count > 0 else { return 0 }
    let bytes = unsafe Array(UnsafeBufferPointer(start: start + 1, count: count - 1))
    if unsafe start[0] & 1 == 0 {
        readToken(bytes)
    } else {
        checkClaims(bytes)
    }
    return 0
}

private let headers = JWSHeaderCache()

private func readToken(_ token: [UInt8]) {
    guard let jws = try? CompactJWS(token) else { return }
    precondition(token.count <= CompactJWS.maximumLength)
    precondition(token.starts(with: jws.signingInput) && token[jws.signingInput.count] == UInt8(ascii: "."))
    precondition(Base64URL.encode(jws.signature).utf8.elementsEqual(token[(jws.signingInput.count + 1)...]))
    let algorithm = try? jws.algorithm(among: [.rs256])
    precondition(algorithm == nil || jws.header.fields["alg"] == "RS256")
    verifyNothing(jws)
    // Twice, so that the second header is a cached one.
    for _ in 0..<2 {
        guard let known = try? CompactJWS(token, headers: headers) else { preconditionFailure("read alone it is one") }
        precondition(known.header.fields == jws.header.fields && (try? known.keyID()) == (try? jws.keyID()))
        precondition((try? known.algorithm(among: [.rs256])) == algorithm)
        precondition(((try? known.checkHeaderFields()) != nil) == ((try? jws.checkHeaderFields()) != nil))
    }
    precondition(verify(token) == nil, "no key has signed this")
}

/// No key of another kind has signed it, whatever its header says.
private func verifyNothing(_ jws: CompactJWS) {
    if let named = try? jws.algorithm(among: Set(SignatureAlgorithm.allCases)) {
        precondition(jws.header.fields["alg"] == .string(named.rawValue))
    }
    precondition(!secret.verify(signature: jws.signature, signingInput: jws.signingInput))
    for key in others {
        for algorithm in key.algorithms {
            precondition(!key.verify(signature: jws.signature, signingInput: jws.signingInput, as: algorithm))
        }
    }
}

/// Public keys of the other kinds, whose private keys have signed no claims.
nonisolated(unsafe) private let others: [VerificationKey] = {
    let modulus =
        "n4EPtAOCc9AlkeQHPzHStgAbgs7bTZLwUBZdR8_KuKPEHLd4rHVTeT-O-XV2jRojdNhxJWTDvNd7nqQ0VEiZQHz_AJmSCpMaJMRBSFKrKb"
        + "2wqVwGU_NsYOYL-QtiWN2lbzcEe6XC0dApr5ydQLrHqkHHig3RBordaZ6Aj-oBHqFEHYpPe7Tpe-OfVfHd1E6cS6M1FZcD1NNLYD5lFHpP"
        + "I9bTwJlsde3uhGqC0ZCuEHg8lhzwOHrtIQbS0FVbb9k3-tVTU4fg_3L_vniUFAKwuCLqKnS2BYwdq_mzSnbLY7h_qixoR7jig3__kRhuax"
        + "wUkRz5iaiQkqgc5gHdrNP5zw"
    let keys: [JSONObject] = [
        ["kty": "RSA", "n": .string(modulus), "e": "AQAB"],
        [
            "kty": "EC", "crv": "P-384", "x": "aMo5Qx1Q5qdiZnt6cjWPWq0Krv1N30yWvGv4QDDJfLsu8hq4HkUDHn4rXM21EfMn",
            "y": "QbR1t-1aFu-sgokYTQQhKljozvMACXlBSvauenJiyYmU-6C9BRTzcnj3ljW-7MN2",
        ],
        [
            "kty": "EC", "crv": "P-521",
            "x": "AekpBQ8ST8a8VcfVOTNl353vSrDCLLJXmPk06wTjxrrjcBpXp5EOnYG_NjFZ6OvLFV1jSfS9tsz4qUxcWceqwQGk",
            "y": "ADSmRA43Z1DSNx_RvcLI87cdL07l6jQyyBXMoxVg_l2Th-x3S1WDhjDly79ajL4Kkd0AZMaZmh9ubmf63e3kyMj2",
        ],
        ["kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"],
        [
            "kty": "OKP", "crv": "Ed448",
            "x": "PhsmT4TY9WwBniEephbf4S1wlLYfWgGga649VU_HsRBtdmJeoKBcIHAfJr3ZKSbZqYF4JHRjtZiA",
        ],
    ]
    do {
        return try keys.map { key in
            guard let id = KeyID("fuzz") else { preconditionFailure("a key ID") }
            return try VerificationKey(
                id: id, parts: PublicKeyParts(jwk: key), allowing: Set(SignatureAlgorithm.allCases))
        }
    } catch { preconditionFailure("\(error)") }
}()

private let secret: HMACKey = {
    do { return try HMACKey(Secret(RandomBytes.make(32)), algorithm: .hs256) } catch { preconditionFailure("\(error)") }
}()

private func checkClaims(_ payload: [UInt8]) {
    let input = Array("\(bench.header).\(Base64URL.encode(payload))".utf8)
    guard let signature = try? bench.key.sign(input) else { preconditionFailure("cannot sign") }
    guard let identity = verify(input + Array(".\(Base64URL.encode(signature))".utf8)) else { return }
    precondition((1...255).contains(identity.providerSubject.utf8.count))
    precondition(identity.issuer == "https://appleid.apple.com")
    precondition(identity.expiresAt > bench.now && identity.issuedAt < identity.expiresAt)
    for name in ["email_verified", "is_private_email", "nonce_supported"] {
        precondition(identity.claims[name].map { $0.bool != nil } ?? true)
    }
}

private func verify(_ token: [UInt8]) -> Identity? {
    let context = AuthenticationContext(now: bench.now, deadline: .never)
    guard case .authenticated(let identity) = try? bench.provider.verify(Credential(bearer: token), in: context) else {
        return nil
    }
    return identity
}

/// A provider that has its one key in hand.
private struct Bench: KeyFetching {
    let now = UnixTime(seconds: 1_800_000_000)
    let key: PrivateKey
    let header = Base64URL.encode(Array(#"{"alg":"ES256","kid":"fuzz"}"#.utf8))
    private(set) var provider: AppleProvider!

    init() throws {
        key = try PrivateKey(generating: .p256)
        let here = SourceLocation(file: "fuzz", line: 1, column: 1)
        func list(_ text: String) -> ConfigurationNode {
            ConfigurationNode(.sequence([ConfigurationNode(.scalar(.init(text, isPlain: true)), at: here)]), at: here)
        }
        let block = ConfigurationNode(
            .mapping([
                .init(key: Located("audiences", at: here), value: list("com.example.app")),
                .init(key: Located("algorithms", at: here), value: list("ES256")),
            ]), at: here)
        var diagnostics = Diagnostics()
        guard let configuration = block.decode(AppleConfiguration.self, title: "fuzz", into: &diagnostics) else {
            return
        }
        let clock = Clock(unixTime: { [now] in now }, monotonicTime: { MonotonicTime(nanoseconds: 1) })
        let policy = IssuerKeysPolicy(
            ttl: .seconds(3600), maximumStale: .seconds(3600), unknownKeyCooldown: .seconds(60),
            negativeTTL: .seconds(60),
            fetchTimeout: .seconds(1))
        let fetcher = self
        provider = try AppleProvider(
            configuration,
            context: ProviderContext(
                name: "fuzz", services: .detached(clock: clock, hasUsers: false), logger: .silent,
                storeKeyPrefix: "test:",
                makeIssuerKeys: { url, algorithms, removed in
                    IssuerKeys(
                        url: url, policy: policy, allowing: algorithms, fetcher: fetcher, store: nil,
                        storeKeyPrefix: "", clock: clock,
                        logger: .silent, onKeysRemoved: removed)
                }, forget: {}))
    }

    func fetch(_ url: String, timeout: Duration, maximumBytes: Int) async throws(FetchError) -> [UInt8] {
        guard case .p256(let x, let y) = key.publicKey.parts else { return [] }
        let entry: JSONObject = [
            "kty": "EC", "crv": "P-256", "kid": "fuzz", "x": .string(Base64URL.encode(x)),
            "y": .string(Base64URL.encode(y)),
        ]
        return JSON.write(["keys": [.object(entry)]] as JSONObject)
    }

    /// Fetches the key, so that verifications need no wait.
    func ready() -> Bench {
        let done = DispatchSemaphore(value: 0)
        let provider = self.provider
        Task.detached {
            await provider?.start()
            done.signal()
        }
        done.wait()
        return self
    }
}

nonisolated(unsafe) private let bench: Bench = {
    do { return try Bench().ready() } catch { preconditionFailure("\(error)") }
}()
