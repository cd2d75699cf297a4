extension Plan {
    /// Blocks of `upstreams`.
    var featureUpstreams: String {
        var text = ""
        if has(.routes) {
            for name in ["blue", "green"] {
                text +=
                    "  \(name): {endpoints: [\(plainEndpoints)], host: \(name).example, timeouts: {connect: 2s, response_head: 8s, idle: 8s}}\n"
            }
        }
        if has(.traffic) { text += trafficUpstreams }
        if has(.copies) {
            text += """
                  shadow:
                    endpoints: ["http://10.0.0.120:9106", {url: "http://10.0.0.121:9106", weight: 3}]
                    host: shadow.example
                    timeouts: {connect: 1s, response_head: 2s}

                """
        }
        if has(.streams) {
            text +=
                "  calls: {endpoints: [\(endpoints(scheme: "h2c", port: 81))], timeouts: {connect: 2s, response_head: 8s, idle: 8s}}\n"
        }
        return text
    }

    private var plainEndpoints: String { endpoints(scheme: "http", port: 80) }

    private func endpoints(scheme: String, port: Int) -> String {
        (0..<upstreams).map { "\"\(scheme)://10.0.0.\(100 + $0):\(port)\"" }.joined(separator: ", ")
    }

    /// Upstreams that look at what becomes of their requests.
    private var trafficUpstreams: String {
        let balance = features.pick(
            20,
            [
                "least_requests", "\"hash:X-Tenant\"", "\"hash:subject\"", "\"hash:address\"",
                "{hash: header, name: subject}",
            ])
        let weighted = (0..<upstreams).map { index in
            "{url: \"http://10.0.0.\(100 + index)\", weight: \(index + 1)\(index == 2 ? ", backup: true" : "")}"
        }.joined(separator: ", ")
        return """
              wary:
                endpoints: [\(weighted)]
                timeouts: {connect: 1s, response_head: 3s, idle: 5s}
                balance: \(balance)
                health_check: {path: "/ready?a=b", port: 9111, interval: 500ms, timeout: 300ms, healthy: 1, unhealthy: 2, expect: [200-299, 404]}
                outlier: {consecutive_failures: 2, error_rate: 50%, minimum_requests: 4, window: 5s, base_ejection: 300ms, max_ejection: 2s}
                slow_start: 3s
                panic_threshold: \(features.pick(21, [0, 50]))%
                retries: {attempts: 2, per_try_timeout: 2s, backoff: 10ms, budget: 50%}
              narrow:
                endpoints: [\(plainEndpoints)]
                timeouts: {connect: 1s, response_head: 3s, idle: 5s}
                breaker: {max_connections: 1, max_requests: \(Self.breadth), max_pending: 2, queue_timeout: \(features.pick(22, [50, 800]))ms}
              informed:
                endpoints: ["http://10.0.0.130:9110"]
                timeouts: {connect: 1s, response_head: 3s, idle: 5s}
                proxy_protocol: v2
              called:
                endpoints: ["h2c://10.0.0.131:9113"]
                timeouts: {connect: 1s, response_head: 3s, idle: 5s}
                health_check: {grpc: true, port: 9112, interval: 1s, timeout: 500ms}
              echoing: {endpoints: ["builtin:echo"]}

            """
    }

    /// Requests of the upstream `narrow` that may be under way in a process.
    static let breadth = 3

    /// Routes of the features, behind all others.
    var featureRoutes: String {
        (has(.routes) ? shapedRoutes : "") + (has(.limits) ? countedRoutes : "") + (has(.programs) ? programRoutes : "")
            + (has(.operators) ? operatorRoutes : "") + (has(.company) ? companyRoutes : "")
            + (has(.traffic) ? trafficRoutes : "")
            + (has(.copies) ? copiedRoutes : "")
    }

    /// Routes that are before those of the same beginning.
    var firstRoutes: String { has(.streams) ? streamRoutes : "" }

    private var shapedRoutes: String {
        """
        - {name: old, match: {path: "/old/**"}, auth: none, redirect: {to: "/pub$path?$query", status: 308}}
        - {name: moved, match: {path: "/moved/**", hosts: ["*.tenant.example"]}, auth: none, redirect: {to: "https://$host/new?from=$path&$query", status: 302}}
        - {name: said, match: {path: "/said/**"}, auth: none, respond: {status: 410, body: "gone"}, headers: {response: {set: {X-Said: "yes"}}}}
        - {name: only, match: {path: "/only/**", methods: [POST, PUT]}, auth: none, respond: {status: 200, body: "ok"}}
        - {name: beta, match: {path: "/pick/**", headers: [{name: X-Beta, prefix: b}], query: [{name: v, matches: "[0-9]+"}]}, auth: none, respond: {status: 201}}
        - {name: present, match: {path: "/pick/**", headers: [{name: X-Gamma, present: true}, {name: X-Delta, equals: d}]}, auth: none, respond: {status: 206}}
        - {name: expression, match: {path_regex: "/pick/[a-z]+-\\\\d{1,3}/\\\\d+"}, auth: none, respond: {status: 202}}
        - {name: wild, match: {path: "/pick/*/a*c/*"}, auth: none, respond: {status: 203}}
        - {name: host, match: {path: "/pick/**", hosts: [exact.example, "*.sub.example"]}, auth: none, respond: {status: 207}}
        - name: rewritten
          match: {path: "/v1/**"}
          auth: none
          timeout: 12s
          rewrite: {strip_prefix: /v1, regex: "/(item|thing)/(.*)", to: "/$1s/$2?kind=$1", add_prefix: /api, host: inner.example}
          headers: {set: {X-Const: {value: "c 1"}}, remove: [X-Drop], response: {set: {X-Resp: "r"}, remove: [Set-Cookie]}}
          upstream: plain
        - name: shared
          match: {path: "/shared/**"}
          auth: none
          cors: {origins: ["https://app.example.org", "https://*.friends.example"], methods: [GET, PUT], headers: [authorization, x-a], expose: [x-world], credentials: true, max_age: 60s}
          upstream: app
        - name: split
          match: {path: "/split/**"}
          auth: {providers: [\(callers.providers)], mode: optional}
          headers: {set: {X-User-Id: {attribute: subject}}}
          split: [{upstream: blue, weight: 3}, {upstream: green, weight: 2}]
        - name: described
          match: {path: "/described/**"}
          auth: {providers: [\(callers.providers)], credentials: [session], max_age: 1h}
          authorize: [{max_age: 10m}]
          forward_credentials: true
          headers:
            set:
              X-User-Id: {attribute: subject}
              X-User-Provider: {attribute: provider}
              X-User-Issuer: {attribute: issuer, encode: base64url}
              X-User-Route: {attribute: route}
              X-User-Name: {attribute: provider_subject, encode: rfc8187}
              X-User-Session: {attribute: session_id, encode: ascii}
              X-User-Since: {attribute: auth_time}
              X-User-Until: {attribute: expires_at}
              X-User-Email: {attribute: email, default: "none"}
          upstream: app

        """
    }

    private var countedRoutes: String {
        """
        - {name: counted, match: {path: "/counted/**"}, auth: none, limits: {rate: [named, hosts], announce: true, body_bytes: 20KiB}, upstream: app}
        - {name: own, match: {path: "/own/**"}, auth: {providers: [\(callers.providers)]}, limits: {rate: [own]}, headers: {set: {X-User-Id: {attribute: subject}}}, upstream: app}

        """
    }

    private var programRoutes: String {
        let all = has(.proxies) ? "keys, partner, robot, device" : "keys, partner, robot"
        return """
            - name: api
              match: {path: "/api/**"}
              auth: {providers: [\(all)]}
              headers:
                set:
                  X-User-Id: {attribute: subject}
                  X-Tier: {claim: tier, default: none}
                  X-Teams: {claim: teams, join: ";"}
                  X-Teams-JSON: {claim: teams, encode: json}
                  X-Name: {claim: name}
                  X-Name-64: {claim: name, encode: base64url}
                  X-Name-8187: {claim: name, encode: rfc8187}
                  X-Name-ASCII: {claim: name, encode: ascii}
                  X-Level: {claim: level}
                  X-Member: {claim: member}
              upstream: app
            - name: gold
              match: {path: "/gold/**"}
              auth: {providers: [\(all)]}
              authorize:
              - {claim: tier, equals: gold}
              - {claim: level, gt: 3}
              - {claim: level, lt: 10}
              - {any: [{claim: teams, contains: a}, {claim: role, in: [admin, root]}]}
              - {claim: name, matches: "Z.*", or_absent: true}
              - {claim: banned, exists: true, not: true}
              headers: {set: {X-User-Id: {attribute: subject}}}
              upstream: app
            - name: either
              match: {path: "/either/**"}
              auth: {providers: [partner, password], mode: optional}
              headers: {set: {X-User-Id: {attribute: subject}}}
              upstream: app

            """
    }

    private var operatorRoutes: String {
        """
        - name: admins
          match: {path: "/admins/**"}
          auth: {providers: [\(callers.providers)], credentials: [session]}
          authorize: [{claim: role, equals: admin}, {any: [{claim: level, gt: 0}, {claim: teams, contains: b}]}]
          headers: {set: {X-User-Id: {attribute: subject}, X-Role: {claim: role}, X-Teams: {claim: teams, encode: json}}}
          upstream: app
        - name: recent
          match: {path: "/recent/**"}
          auth: {providers: [\(callers.providers)], credentials: [session]}
          authorize: [{max_age: 3s}]
          headers: {set: {X-User-Id: {attribute: subject}}}
          upstream: app

        """
    }

    private var companyRoutes: String {
        """
        - name: work
          match: {path: "/task/**"}
          auth: {providers: [company]}
          authorize: [{claim: roles, contains: staff, or_absent: true}, {claim: scope, contains: read}]
          headers: {set: {X-User-Id: {attribute: subject}, X-Email: {attribute: email}}}
          upstream: app

        """
    }

    private var trafficRoutes: String {
        """
        - {name: wary, match: {path: "/wary/**"}, auth: none, upstream: wary}
        - {name: narrowed, match: {path: "/narrowed/**"}, auth: none, upstream: narrow}
        - {name: informed, match: {path: "/informed/**"}, auth: none, upstream: informed}
        - {name: called, match: {path: "/called/**"}, auth: none, upstream: called}
        - {name: echoing, match: {path: "/echoing/**"}, auth: none, upstream: echoing}

        """
    }

    private var copiedRoutes: String {
        """
        - name: copied
          match: {path: "/copied/**"}
          auth: {providers: [\(callers.providers)], mode: optional}
          headers: {set: {X-User-Id: {attribute: subject, default: ""}}}
          mirror: {upstream: shadow, percent: \(features.pick(23, [100, 60.5]))}
          upstream: app

        """
    }

    /// How long a tunnel at `/ws/aged` may outlive its credential, in nanoseconds; `nil` for as long as it likes.
    var agedGrace: Int64? { features.pick(24, [0, nil, 2_000_000_000]) }

    private var streamRoutes: String {
        """
        - name: aged
          match: {path: "/ws/aged/**"}
          auth: {providers: [\(callers.providers)]}
          headers: {set: {X-User-Id: {attribute: subject}}}
          upgrade: {websocket: true, protocols: [chat], max_connection_age: \(Self.age)s, idle: 6s, close_on_expiry: \(features.pick(24, ["true", "false", "2s"]))}
          upstream: plain
        - name: long-calls
          match: {path: "/sse/calls/**"}
          auth: {providers: [\(callers.providers)]}
          headers: {set: {X-User-Id: {attribute: subject}}}
          upstream: calls
        - name: calls
          match: {path: "/calls/**"}
          auth: {providers: [\(callers.providers)]}
          headers: {set: {X-User-Id: {attribute: subject}}}
          upstream: calls

        """
    }

    /// The most seconds of a tunnel at `/ws/aged`.
    static let age = 4
}
