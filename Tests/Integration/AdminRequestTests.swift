import MartletTesting
import Testing

/// Requests that the admin listener rejects, because they are not what they seem.
@Suite struct `Admin request checks` {
    @Test func `reject what a resource does not know, and what is given twice`() throws {
        try withOpenGateway { gateway, upstream throws in
            let client = try HTTPClient(to: gateway.operators)
            let type = ("Content-Type", "application/json")
            for action in ["drain", "restore"] {
                let body = Array(#"{"endpoint":"\#(upstream.url)","x":1}"#.utf8)
                let response = try client.exchange("POST", "/upstreams/api/\(action)", [type], body: body)
                expectRejection(response, 400, "request_invalid", action)
            }
            for (query, detail) in [
                ("path=/a&path=/b", "the parameter 'path' is repeated"), ("path=nopath", "path must begin with /"),
                ("path=/a&method=GET&method=PUT", "the parameter 'method' is repeated"),
                ("", "path or url is required"),
            ] {
                let response = try gateway.askAdmin("/explain?\(query)")
                expectRejection(response, 400, "request_invalid", query)
                #expect(response.member("detail") == detail, "\(response)")
            }
            #expect(try gateway.askAdmin("/explain?path=/a&header=A:b&header=C:d").status == 200)
        }
    }

    @Test func `reject CONNECT as a method`() throws {
        try withOpenGateway { gateway, _ throws in
            let result = try run(
                Executable.named("curl"),
                [
                    "-s", "-o", "/dev/null", "-w", "%{http_code}", "-X", "CONNECT", "--request-target",
                    "example.com:443", "http://\(gateway.admin)/",
                ])
            #expect(result.output == "405", "\(result)")
        }
    }

    @Test func `require the token to say whether a password is right`() throws {
        let token = "correct-horse-battery-staple-0123456789"
        let folder = try TemporaryFolder()
        let tokenFile = try folder.write(token, to: "token")
        let upstream = try ScriptedUpstream()
        var config = GatewayConfig(endpoints: [upstream.url])
        config.admin = "address: 127.0.0.1:0\ntoken_file: \(tokenFile)"
        try withMartlet(config.text) { gateway throws in
            let client = try HTTPClient(to: gateway.admin)
            for value in ["Basic YTpi", "basic YTpi", "BASIC  YTpi"] {
                let guess = [("X-Explain-Authorization", value)]
                expectRejection(
                    try client.exchange("GET", "/explain?path=/x", guess), 401, "credential_missing", value)
                let wrong = guess + [("Authorization", "Bearer x")]
                expectRejection(
                    try client.exchange("GET", "/explain?path=/x", wrong), 401, "credential_invalid", value)
                let right = guess + [("Authorization", "Bearer \(token)")]
                #expect(try client.exchange("GET", "/explain?path=/x", right).status == 200, "\(value)")
            }
            let bearer = [("X-Explain-Authorization", "Bearer x")]
            #expect(try client.exchange("GET", "/explain?path=/x", bearer).status == 200)
        }
    }
}
