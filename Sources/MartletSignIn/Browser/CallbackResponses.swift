internal import MartletBrowser
internal import MartletCore
internal import MartletCrypto
internal import MartletJSON
internal import MartletProvider
internal import MartletResponder

/// Where a browser goes when its user is signed in.
struct CallbackResponse: Sendable {
    /// What follows the provider's page.
    enum Destination: String, Sendable { case page, app }

    let destination: Destination
    let location: String
    /// The values of `Set-Cookie`.
    var cookies: [String] = []
}

extension CallbackResponse {
    private static let limits = JSONLimits(maximumDepth: 4, maximumBytes: 64 * 1024)

    /// - Parameter bytes: those of ``encoded``; `nil` for any other.
    init?(_ bytes: [UInt8]) {
        guard let object = try? JSON.parse(bytes, limits: Self.limits).object,
            let destination = object["to"]?.string.flatMap(Destination.init(rawValue:)),
            let location = object["location"]?.string, let cookies = object["cookies"]?.array
        else { return nil }
        self.init(destination: destination, location: location, cookies: cookies.compactMap(\.string))
    }

    var encoded: [UInt8] {
        let object: JSONObject = [
            "to": .string(destination.rawValue), "location": .string(location),
            "cookies": .array(cookies.map { .string($0) }),
        ]
        return JSON.write(object)
    }
}

/// Responds to an attempt once, and to the same way back from the provider with the same response for some seconds.
///
/// Only a way back with which the provider has proved an identity gets here, so nothing is stored for any other.
struct CallbackResponses: Sendable {
    private static let purpose = "martlet browser callback 1"
    private static let mark: [UInt8] = [1]
    /// Longer than an attempt can come back.
    private static let lifetime = SignInAttempt.lifetime + .seconds(120)

    private let repetition: LoginRepetition
    private let store: any SharedStoring
    private let key: String
    private let deadline: MonotonicTime
    /// Names this way back: the same attempt with the same fields.
    let name: String

    init(
        _ attempt: SignInAttempt, _ fields: CallbackFields, _ provider: String, _ endpoints: SignInEndpoints,
        _ request: LocalRequest
    ) {
        let setup = endpoints.setup
        store = setup.store.partition(.browsers, for: request.owner)
        key = "\(setup.storeKeyPrefix)browser:attempt:\(attempt.usedKey)"
        deadline = endpoints.context(of: request).deadline
        // Only the browser that began the attempt has its verifier.
        let secret = HKDFSHA256.derive(
            from: Secret(attempt.verifier), salt: fields.digest, purpose: Array(Self.purpose.utf8),
            length: AES256GCM.keyLength)
        name = Base64URL.encode(SHA256.digest(Array(attempt.usedKey.utf8) + fields.digest))
        repetition = LoginRepetition(
            SignIn.Repetition(name: name, key: secret), provider: provider, for: request.owner, setup: setup)
    }

    /// The response of the first way back, or that of an identical one a moment ago.
    /// - Throws: 400 for another way back of an attempt that has succeeded, 503; whatever `body` throws, which uses up
    ///   nothing.
    func once(_ body: () async throws(Failure) -> CallbackResponse) async throws(Failure) -> CallbackResponse {
        let claim = try await fromStore(await repetition.claim(until: deadline))
        if let response = try Self.response(of: claim) { return response }
        do throws(Failure) { try await recordUse() } catch {
            await repetition.release()
            throw error
        }
        do throws(Failure) {
            let response = try await body()
            await repetition.complete(response.encoded)
            return response
        } catch {
            try? await store.remove(key)
            await repetition.release()
            throw error
        }
    }

    /// The response to an identical way back a moment ago; a code that came with it cannot be sent again.
    func stored() async throws(Failure) -> CallbackResponse? {
        let claim = try await fromStore(await repetition.storedResponse())
        return try claim.flatMap { (claim) throws(Failure) in try Self.response(of: claim) }
    }

    private static func response(of claim: LoginRepetition.Claim) throws(Failure) -> CallbackResponse? {
        guard case .repeated(let bytes) = claim else { return nil }
        guard let response = CallbackResponse(bytes) else { throw .malformed(.browserAttemptUnknown) }
        return response
    }

    /// A browser may send an old cookie again.
    private func recordUse() async throws(Failure) {
        let isFirst = try await fromStore(await store.setIfAbsent(Self.mark, for: key, lifetime: Self.lifetime))
        guard isFirst else { throw .malformed(.browserAttemptUnknown) }
    }
}
