import MartletCore
import MartletCrypto
import MartletJOSE
import MartletJSON

/// The first byte chooses: the rest is a proof as a client would send it, claims that a good key signs, or an `htu`.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    guard count > 0 else { return 0 }
    let bytes = unsafe Array(UnsafeBufferPointer(start: start + 1, count: count - 1))
    switch unsafe start[0] % 3 {
    case 0: precondition(confirmation(bytes) == nil, "no key has signed this")
    case 1: checkClaims(bytes)
    default: checkTarget(String(decoding: bytes, as: UTF8.self))
    }
    return 0
}

private let now = UnixTime(seconds: 1_800_000_000)
private let policy = DPoPPolicy(
    algorithms: Set(SignatureAlgorithm.allCases), maximumAge: 60, maximumSkew: 5)
private let path = "/v1/orders"

nonisolated(unsafe) private let request: DPoPRequest = {
    guard let target = DPoPTarget("https://api.example\(path)") else { preconditionFailure("a URL") }
    return DPoPRequest(method: "POST", target: target, accessToken: Array("token".utf8))
}()

nonisolated(unsafe) private let key: PrivateKey = {
    do { return try PrivateKey(generating: .p256) } catch { preconditionFailure("\(error)") }
}()

private func confirmation(_ proof: [UInt8]) -> DPoPConfirmation? {
    do throws(DPoPError) {
        return try DPoPProof(proof, policy: policy).confirmation(for: request, policy: policy, now: now)
    } catch {
        precondition(error.code.rawValue.hasPrefix("dpop."))
        return nil
    }
}

/// Accepted claims are within bounds, as a plain reading of them shows.
private func checkClaims(_ payload: [UInt8]) {
    let header: JSONObject = ["typ": "dpop+jwt", "alg": "ES256", "jwk": .object(key.publicKey.parts.jwkMembers)]
    let input = Array("\(Base64URL.encode(JSON.write(header))).\(Base64URL.encode(payload))".utf8)
    guard let signature = try? key.sign(input) else { preconditionFailure("cannot sign") }
    guard let found = confirmation(input + Array(".\(Base64URL.encode(signature))".utf8)) else { return }
    precondition(found.thumbprint == key.publicKey.parts.thumbprint && found.replayKey.utf8.count == 43)
    precondition(found.acceptedUntil >= now && found.acceptedUntil <= now.advanced(bySeconds: 65))
    let limits = JSONLimits(maximumDepth: 8, maximumBytes: payload.count)
    guard let claims = try? JSON.parse(payload, limits: limits).object else { preconditionFailure("not JSON") }
    precondition(
        claims["htm"] == "POST" && claims["ath"] == .string(Base64URL.encode(SHA256.digest([UInt8]("token".utf8)))))
    precondition((1...128).contains(claims["jti"]?.string?.utf8.count ?? 0))
}

/// A URL of two parts is the same as one from the parts, and is not changed by what is not compared.
private func checkTarget(_ text: String) {
    let whole = DPoPTarget("https://" + text)
    precondition(DPoPTarget("HTTPS://" + text + "#x") == whole)
    guard let cut = text.utf8.firstIndex(of: UInt8(ascii: "/")),
        !text.utf8[..<cut].contains(where: { "?#".utf8.contains($0) })
    else { return }
    let made = DPoPTarget(
        scheme: Array("https".utf8), authority: Array(text.utf8[..<cut]), path: Array(text.utf8[cut...]))
    precondition(made == whole)
}
