internal import MartletCore
internal import MartletFetch
internal import MartletServer

/// Sends the notifications of a simulator, by libcurl.
struct SimulatorClient: HTTPCalling {
    private let fetcher: HTTPFetcher

    /// - Parameter authority: a PEM file of the certificate authority to trust; `nil`: those of the system.
    init(authority: String? = nil) throws(StartError) {
        var options = FetchOptions()
        options.caFile = authority
        options.userAgent = "martlet-simulator"
        do throws(HTTPCallError) { fetcher = try HTTPFetcher(options) } catch {
            throw StartError(code: error.code, message: "\(error)", exit: .internalFault)
        }
    }

    func send(_ call: HTTPCall) async throws(HTTPCallError) -> HTTPCallResponse {
        try await fetcher.send(call, for: .provider("simulator"))
    }
}
