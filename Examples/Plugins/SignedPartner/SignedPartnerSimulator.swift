internal import MartletCore
internal import MartletCrypto
internal import MartletJSON
public import MartletProvider

/// The partner of `martlet demo`: its simulator signs a request for the demo's path whenever it is asked.
extension SignedPartnerProvider: Simulating {
    public static func simulator(at site: SimulatorSite) throws -> Simulator {
        let secret = Secret(Hexadecimal.text(try RandomBytes.make(32)))
        return Simulator(
            configuration: ["subject": "acme", "secret_file": .string("\(site.folder)/partner.secret")],
            files: ["partner.secret": secret.withBytes { Array($0) }],
            demonstrations: [
                Demonstration(
                    200, "a request that the partner has signed", target: .gateway(path: site.path),
                    headers: [.init("X-Partner-Signature", followedBy: "/signature")]),
                Demonstration(
                    401, "the signature of another method", target: .gateway(path: site.path), method: "DELETE",
                    headers: [.init("X-Partner-Signature", followedBy: "/signature")]),
                Demonstration(200, "what the partner signs with", target: .simulator(path: "/signature")),
            ]
        ) { request in
            guard request.path == "/signature" else { return .text("only /signature exists\n", status: 404) }
            let time = site.clock.unixTime.seconds
            let code = HMACSHA256.authenticate(Array("\(time) GET \(site.path)".utf8), key: secret)
            return .text("\(time) \(Hexadecimal.text(code))")
        }
    }
}
