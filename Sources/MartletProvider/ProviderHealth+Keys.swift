private import MartletCore
public import MartletJOSE

extension ProviderHealth {
    /// The health of a provider whose only dependency is the keys of an issuer: not ready without keys, degraded with
    /// keys that could not be refreshed.
    public init(_ status: IssuerKeysStatus) {
        self.init(
            state: status.source == .none ? .unavailable : status.isStale ? .degraded : .ready,
            detail: Self.detail(of: status), gauges: Self.gauges(of: status))
    }

    private static func detail(of status: IssuerKeysStatus) -> String {
        let names = status.keyIDs.map(\.text).joined(separator: " ")
        let age = status.age.map { ", \($0.wholeSeconds) s old" } ?? ""
        let error = status.lastError.map { ", last refresh: \($0)" } ?? ""
        return status.source == .none
            ? "no keys\(error)" : "keys \(names) from the \(status.source.rawValue)\(age)\(error)"
    }

    private static func gauges(of status: IssuerKeysStatus) -> [Gauge] {
        var gauges: [Gauge] = [
            .init(
                name: "jwks_keys", help: "Keys of the issuer in use.", kind: .gauge, value: Double(status.keyIDs.count)),
            .init(
                name: "jwks_fetches_total", help: "Requests for the issuer's keys.", kind: .counter,
                value: Double(status.fetches)),
            .init(
                name: "jwks_failures_total", help: "Failed refreshes of the issuer's keys.", kind: .counter,
                value: Double(status.failures)),
        ]
        if let age = status.age {
            gauges.append(
                .init(
                    name: "jwks_age_seconds", help: "Time since the keys in use were fetched from the issuer.",
                    kind: .gauge, value: Double(age.wholeMilliseconds) / 1000))
        }
        return gauges
    }
}
