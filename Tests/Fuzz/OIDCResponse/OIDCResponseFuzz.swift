import Dispatch
import MartletConfig
import MartletCore
import MartletJSON
import MartletProvider
import OIDCProvider
import Synchronization

private let block = """
    issuer: https://issuer.example
    audiences: [api]
    rename: { upn: email, scp: scope }
    accepts: [{ bearer_prefix: opq_ }]
    introspection: { url: "https://issuer.example/introspect", client_id: gateway, client_secret: s }
    """

/// Responds with the fuzzer's input, whatever is asked.
private final class Script: HTTPCalling {
    private let body = Mutex<[UInt8]>([])

    func load(_ next: [UInt8]) { body.withLock { $0 = next } }

    func send(_ call: HTTPCall) async throws(HTTPCallError) -> HTTPCallResponse {
        HTTPCallResponse(status: 200, body: body.withLock { $0 })
    }
}

private let now = UnixTime(seconds: 1_800_000_000)

/// A provider in front of the script.
private struct Bench {
    let script = Script()
    let clock = Clock(unixTime: { now }, monotonicTime: { MonotonicTime(nanoseconds: 1) })

    func provider() -> OIDCProvider {
        var diagnostics = Diagnostics()
        let node = ConfigurationNode.parse(
            Array(block.utf8), file: "fuzz", environment: { _ in nil }, into: &diagnostics)
        let detached = ProviderContext.Services.detached(clock: clock, hasUsers: false)
        let services = ProviderContext.Services(
            clock: clock, http: script, store: detached.store, hashing: detached.hashing, users: nil)
        guard let configuration = node?.decode(OIDCConfiguration.self, title: "fuzz", into: &diagnostics),
            let provider = try? OIDCProvider(configuration, context: .detached("fuzz", services: services))
        else { preconditionFailure("\(diagnostics)") }
        return provider
    }
}

private let bench = Bench()
private let introspecting = bench.provider()

/// The first byte chooses: the rest is a discovery document, or what the issuer says about a token.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    guard count > 0 else { return 0 }
    bench.script.load(unsafe Array(UnsafeBufferPointer(start: start + 1, count: count - 1)))
    let isDocument = unsafe start[0] & 1 == 0
    let done = DispatchSemaphore(value: 0)
    Task.detached {
        if isDocument { await discover() } else { await introspect() }
        done.signal()
    }
    done.wait()
    return 0
}

private func discover() async {
    // A provider of its own: a document that is accepted stays.
    let provider = bench.provider()
    let results = await provider.checkOnline(until: .never)
    precondition(results.count == 3, "discovery, keys, introspection")
    precondition(provider.health.state != .ready, "there are no keys")
}

private func introspect() async {
    let context = AuthenticationContext(now: now, deadline: .never)
    guard let identity = try? await introspecting.authenticate(Credential(bearer: Array("opq_1".utf8)), in: context)
    else { return }
    precondition((1...255).contains(identity.providerSubject.utf8.count))
    precondition(identity.issuer == "https://issuer.example")
    precondition(identity.expiresAt > now && identity.reusableUntil == now)
    precondition(!identity.claims.has("cnf") && !identity.claims.has("upn") && !identity.claims.has("scp"))
    precondition(identity.claims["scope"].map { $0.array?.allSatisfy { $0.string != nil } == true } ?? true)
    precondition(identity.claims["email_verified"].map { $0.bool != nil } ?? true)
}
