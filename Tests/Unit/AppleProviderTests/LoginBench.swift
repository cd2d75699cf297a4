import AppleProvider
import MartletCore
import MartletJSON
import MartletProvider
import MartletTesting

extension Bench {
    /// The members of a login's body beside the token.
    struct Request {
        var texts: [String: String] = [:]
        var others: [String: JSONValue] = [:]
        var isForm = false

        func with(_ token: String) -> SignInForm {
            SignInForm(
                texts: texts.merging(["identity_token": token]) { _, token in token }.mapValues { Secret($0) },
                others: others, isForm: isForm)
        }
    }

    /// Logs in with a token that is changed first.
    func login(
        _ request: Request = Request(), _ change: (inout Token) -> Void = { _ in }
    ) async throws -> Result<SignIn, AuthenticationError> {
        await login(form: request.with(try Self.token(change)))
    }

    /// Logs in with a nonce in the body, and one in the token.
    func login(nonce: String?, token: String?) async throws -> Result<SignIn, AuthenticationError> {
        try await login(Request(texts: nonce.map { ["nonce": $0] } ?? [:])) {
            $0.claims["nonce"] = token.map { JSONText(string: $0) }
        }
    }

    func login(form: SignInForm) async -> Result<SignIn, AuthenticationError> {
        do throws(AuthenticationError) {
            return .success(try await provider.signIn(with: form, in: Self.context))
        } catch {
            return .failure(error)
        }
    }
}

extension Result where Success == SignIn, Failure == AuthenticationError {
    /// The error code of a login, or `nil` when it succeeds.
    var code: ErrorCode? { if case .failure(let error) = self { error.code } else { nil } }
    var disposition: AuthenticationError.Disposition? {
        if case .failure(let error) = self { error.disposition } else { nil }
    }
    /// The name that is kept with the account.
    var name: String? { if case .success(let signIn) = self { signIn.storedClaims["name"]?.string } else { nil } }
}

/// A store that is unavailable.
struct BrokenStore: SharedStoring {
    private static let outage = StoreError(code: "store.down", message: "down")

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
