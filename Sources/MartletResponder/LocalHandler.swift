/// Responds to local requests; runs off the loops and may wait, within ``LocalLimits/timeout``.
package typealias LocalHandler = @Sendable (LocalRequest) async -> LocalResponse
