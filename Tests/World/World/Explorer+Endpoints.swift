import MartletJSON
import WorldMachine

/// The gateway's own endpoints, with bodies and requests that they do not expect.
extension Explorer {
    /// What the gateway says of itself.
    func discover(_ next: @escaping Next) {
        let (path, status): (String, Int) = client.random.pick([
            ("/auth/openapi.json", 200), ("/auth/openapi.json?forms=true", 200), ("/.well-known/change-password", 302),
            ("/.well-known/apple-app-site-association", 200), ("/auth/nothing", 404), ("/auth/login/nothing", 404),
            ("/auth/link/nothing", 405), ("/auth/refresh", 405),
        ])
        var trial = Trial(String(path.prefix { $0 != "?" }))
        trial.target = { _ in path }
        send(trial, next) { exchange in
            if path.hasPrefix("/auth/link"), [404, 405].contains(exchange.status) { return nil }
            if path == "/auth/login/nothing", [404, 405].contains(exchange.status) { return nil }
            if status == 200, exchange.isComplete, exchange.status == 200,
                (try? JSON.parse(exchange.responseBody, limits: JSONLimits(maximumDepth: 64, maximumBytes: 4_000_000)))
                    == nil
            {
                return "it is no JSON"
            }
            return exchange.status == status || (status == 302 && exchange.status == 303)
                ? nil : "it is to be \(status)"
        }
    }

    /// A body that no endpoint takes: nothing begins, and the connection lives on.
    func babble(_ next: @escaping Next) {
        let json = "Content-Type: application/json"
        let form = "Content-Type: application/x-www-form-urlencoded"
        let (fields, body, status): ([String], String, Int) = client.random.pick([
            (["Content-Type: text/plain"], "username=u0", 415), ([json, "Content-Encoding: gzip"], "{}", 415),
            ([json], "[]", 400), ([json], "{\"username\":\"a\",\"username\":\"b\"}", 400), ([json], "{", 400),
            ([json], "{\"username\":7}", 400),
            ([json], "", 400), ([form], "username=%zz", 400), ([form], "username=a&username=b", 400),
            ([form], "username=a%00", 400),
            ([form], "password=a", 400), (["Content-Type: application/json; charset=latin1"], "{}", 415),
            ([], "{}", 415),
            ([form], (0..<40).map { "a\($0)=1" }.joined(separator: "&"), 400),
            ([json], "{\"username\":\"\(String(repeating: "x", count: 70_000))\"}", 413),
            ([form], "username=u0&password=x&device_name=%E2%80%AEx", 400), ([form], "usernme=u0&password=x", 400),
        ])
        let path = client.random.pick(["/auth/login/password", "/auth/login/password", "/auth/refresh", "/auth/revoke"])
        var trial = Trial(path)
        (trial.method, trial.proof, trial.fields, trial.body) = ("POST", .wrong, fields, Array(body.utf8))
        send(trial, next) { exchange in
            if path != "/auth/login/password" {
                return [400, 413, 415].contains(exchange.status) ? nil : "its body is none"
            }
            return exchange.status == status ? nil : "it is to be \(status)"
        }
    }

    /// A page of another origin asks the endpoints.
    func askFromPage(_ next: @escaping Next) {
        let (origin, isAllowed) = client.random.pick([("https://pages.example", true), ("https://evil.example", false)])
        var trial = Trial("/auth/login/password")
        trial.method = "OPTIONS"
        trial.fields = [
            "Origin: \(origin)", "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: content-type",
        ]
        send(trial, next) { exchange in
            let found = exchange.head?.value("access-control-allow-origin")
            return isAllowed == (found == origin) && (isAllowed || found == nil)
                ? nil : "it allows \(found ?? "nothing")"
        }
    }

    /// More logins than may be tried.
    func attempt(_ next: @escaping Next) {
        let count = client.random.within(2...6)
        var left = count
        for _ in 0..<count {
            var trial = Trial("/auth/login/password")
            (trial.method, trial.proof) = ("POST", .wrong)
            trial.fields = ["Content-Type: application/x-www-form-urlencoded"]
            trial.body = Array("username=x-\(client.random.below(3))&password=wrong".utf8)
            send(trial) { [self] exchange in
                left -= 1
                if exchange.status == 200 { violate(.identity, exchange, "is let in with a wrong password") }
                if left == 0 { next(exchange) }
            }
        }
    }

    /// The pages of a browser that has no session, and one that has.
    func browse(_ next: @escaping Next) {
        guard plan.callers.hasBrowsers else { return discover(next) }
        let (path, status): (String, [Int]) = client.random.pick([
            ("/me/", [302]), ("/auth/account", [302]), ("/auth/signed-out", [200]),
            ("/auth/sign-in?lang=zh-Hant", [200]),
            ("/auth/sign-in?return_to=https%3A%2F%2Fevil.example&confirm=true", [200]),
            ("/.well-known/oauth-authorization-server", [200]),
            ("/nowhere/", [404]), ("/auth/sign-up", [200, 404]), ("/auth/forgot", [200, 404]),
            ("/auth/reset?token=mlt_x", [200, 404]),
            ("/auth/callback/company?state=x", [400, 404, 405]), ("/auth/start/nothing", [404]),
            ("/auth/verify?token=x", [200, 404]),
        ])
        var trial = Trial(String(path.prefix { $0 != "?" }))
        trial.fields = [
            "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document", "Accept: text/html",
            "Accept-Language: zh-CN,zh;q=0.9,en;q=0.8",
        ]
        trial.target = { path.hasSuffix("/") ? $0.path : path }
        send(trial, next) { exchange in
            if String(decoding: exchange.responseBody, as: UTF8.self).contains("evil.example") {
                return "it leads elsewhere"
            }
            return status.contains(exchange.status) ? nil : "it is to be \(status)"
        }
    }
}
