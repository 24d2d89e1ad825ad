PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE crawl (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
INSERT INTO crawl VALUES('meaning','{"urls": ["http://site.test/"], "canonical": true}');
CREATE TABLE walks (walk INTEGER PRIMARY KEY, first INTEGER, started REAL);
INSERT INTO walks VALUES(1,1,1795350883.2410228252);
CREATE TABLE runs (
        run INTEGER PRIMARY KEY, walk INTEGER, started REAL, ended REAL, seconds REAL, how TEXT,
        retries INTEGER, settings TEXT
    );
INSERT INTO runs VALUES(1,1,1795350883.2410349845,1795350883.2737002372,10.858253783381332624,'finished',3,'{"workers": 3, "per_host": 4}');
CREATE TABLE urls (
        number INTEGER PRIMARY KEY, walk INTEGER, ended INTEGER, tries INTEGER, depth INTEGER,
        redirects INTEGER, purpose TEXT, priority REAL, url TEXT, referrer TEXT
    );
INSERT INTO urls VALUES(1,1,1,0,0,10,'page',NULL,'http://site.test/',NULL);
INSERT INTO urls VALUES(2,1,1,0,0,10,'sitemap',NULL,'http://site.test/map.xml','http://site.test/robots.txt');
INSERT INTO urls VALUES(3,1,1,0,1,10,'page',NULL,'http://site.test/a','http://site.test/');
INSERT INTO urls VALUES(4,1,1,0,1,10,'page',NULL,'http://site.test/old','http://site.test/');
INSERT INTO urls VALUES(5,1,1,0,1,10,'page',NULL,'http://site.test/gone','http://site.test/');
INSERT INTO urls VALUES(6,1,1,0,1,10,'page',NULL,'http://site.test/reset','http://site.test/');
INSERT INTO urls VALUES(7,1,1,3,1,10,'page',NULL,'http://site.test/refused','http://site.test/');
INSERT INTO urls VALUES(8,1,1,0,1,10,'page',NULL,'http://site.test/folded','http://site.test/');
INSERT INTO urls VALUES(9,1,1,0,1,10,'page',NULL,'http://dead.test/','http://site.test/');
INSERT INTO urls VALUES(10,1,1,0,1,10,'page',NULL,'http://lost.test/1','http://site.test/');
INSERT INTO urls VALUES(11,1,1,0,1,10,'page',NULL,'http://lost.test/2','http://site.test/');
INSERT INTO urls VALUES(12,1,1,0,1,10,'page',0.69999999999999995559,'http://site.test/listed','http://site.test/map.xml');
CREATE TABLE page_ (
        number INTEGER PRIMARY KEY, fetched REAL, status INTEGER, size INTEGER, tries INTEGER,
        seconds REAL, refused INTEGER, links_beyond INTEGER, same_as INTEGER, digest BLOB,
        content_type TEXT, charset TEXT, title TEXT, media TEXT, etag TEXT, last_modified TEXT,
        canonical TEXT, duplicate_of TEXT, robots TEXT, flaws TEXT, exact BLOB
    );
INSERT INTO page_ VALUES(1,1795350883.2592723369,200,415,1,0.0,2,0,NULL,X'4e62e8bad9569894fbf550752748c7c109f24f48','text/html','utf-8',NULL,'text/html; charset=utf-8',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO page_ VALUES(3,1795350883.2603161334,200,47,1,0.0,0,0,NULL,X'f7a2c0dac46966ec7acf6d46c25ee59e2d9df321','text/html','utf-8',NULL,'text/html; charset=utf-8',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO page_ VALUES(5,1795350883.2603785991,404,0,1,0.0,0,0,NULL,NULL,'','',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO page_ VALUES(8,1795350883.2641880512,200,106,1,0.0,1,0,NULL,X'29ca31c938faa63b6ae3e64852465c6c2570103e','text/html','utf-8',NULL,'text/html; charset=utf-8',NULL,NULL,'http://site.test/a','http://site.test/a',NULL,NULL,NULL);
INSERT INTO page_ VALUES(12,1795350883.264216423,200,93,1,0.0,1,0,NULL,X'6f46cac2b794def0ad6d22752d307d294eae90d9','text/html','utf-8','listed','text/html; charset=utf-8',NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE links_ (number INTEGER PRIMARY KEY, links TEXT, refused TEXT);
INSERT INTO links_ VALUES(1,'[["http://site.test/a",["a","/a"]],["http://site.test/old",["a","/old"]],["http://site.test/gone",["a","/gone"]],["http://site.test/reset",["a","/reset"]],["http://site.test/refused",["a","/refused"]],["http://site.test/folded",["a","/folded"]],["http://dead.test/",["a","http://dead.test/"]],["http://lost.test/1",["a","http://lost.test/1"]],["http://lost.test/2",["a","http://lost.test/2"]]]','[["http://other.test/","other_site",["a","http://other.test/"]],["http://site.test/secret","robots",["a","/secret"]]]');
INSERT INTO links_ VALUES(3,'[["http://site.test/",["a","/"]]]',NULL);
INSERT INTO links_ VALUES(8,'[["http://site.test/",["a","/"]]]','[["http://site.test/only-here","duplicate",["a","/only-here"]]]');
INSERT INTO links_ VALUES(12,NULL,'[["http://[x&","bad_url",["a","http://[x&#xD800;"]]]');
CREATE TABLE redirect_ (
        number INTEGER PRIMARY KEY, fetched REAL, status INTEGER, target TEXT, refused TEXT,
        tries INTEGER, seconds REAL, exact BLOB
    );
INSERT INTO redirect_ VALUES(4,1795350883.2603523731,301,'http://site.test/a',NULL,1,0.0,NULL);
CREATE TABLE failure_ (
        number INTEGER PRIMARY KEY, fetched REAL, reason TEXT, detail TEXT, target TEXT,
        phase TEXT, tries INTEGER, seconds REAL, exact BLOB
    );
INSERT INTO failure_ VALUES(6,1795350883.2604033947,'tls','bad',NULL,NULL,1,0.0,NULL);
INSERT INTO failure_ VALUES(7,1795350883.2699375153,'refused','nobody listens',NULL,'connect',4,0.0,NULL);
INSERT INTO failure_ VALUES(9,1795350883.2641479969,'tls','robots.txt: the certificate has expired',NULL,'read',0,0.0,NULL);
CREATE TABLE skip_ (number INTEGER PRIMARY KEY, reason TEXT);
INSERT INTO skip_ VALUES(10,'robots_unavailable');
INSERT INTO skip_ VALUES(11,'robots_unavailable');
CREATE TABLE robots (
        origin TEXT PRIMARY KEY, fetched REAL, status INTEGER, headers TEXT, body BLOB
    ) WITHOUT ROWID;
INSERT INTO robots VALUES('http://site.test',1795350883.2698197364,200,'[["content-type","text/plain"]]',X'557365722d6167656e743a202a0a446973616c6c6f773a202f7365637265740a536974656d61703a202f6d61702e786d6c0a536974656d61703a20687474703a2f2f736974652e746573742f6d61702e786d6c0a536974656d61703a20687474703a2f2f656c736577686572652e746573742f6d61702e786d6c');
CREATE TABLE hosts (
        scheme TEXT, host TEXT, waiting INTEGER, flying INTEGER, most INTEGER, delay REAL,
        rest REAL, latency REAL, failures INTEGER, given_up TEXT, detail TEXT, phase TEXT
    );
INSERT INTO hosts VALUES('http','site.test',0,0,1,0.0,0.0,0.0,4,NULL,NULL,NULL);
INSERT INTO hosts VALUES('http','dead.test',0,0,1,0.0,0.0,0.0,1,'tls','robots.txt: the certificate has expired','read');
INSERT INTO hosts VALUES('http','lost.test',0,0,1,0.0,15.676416926455690514,0.0,6,'robots_unavailable',NULL,NULL);
CREATE TABLE sitemaps (
        id INTEGER PRIMARY KEY, walk INTEGER, url TEXT, kind TEXT, entries INTEGER,
        admitted INTEGER, flaws TEXT, detail TEXT, referrer TEXT, refused TEXT, exact BLOB
    );
INSERT INTO sitemaps VALUES(1,1,'http://elsewhere.test/map.xml','',0,0,'["other_site"]','not asked for: other_site','http://site.test/robots.txt',NULL,NULL);
INSERT INTO sitemaps VALUES(2,1,'http://site.test/map.xml','urlset',2,1,NULL,'','http://site.test/robots.txt','[["http://other.test/x","other_site"]]',NULL);
CREATE TABLE listings (
        walk INTEGER, url TEXT, sitemap TEXT, last_modified TEXT, priority REAL,
        PRIMARY KEY (walk, url)
    ) WITHOUT ROWID;
INSERT INTO listings VALUES(1,'http://site.test/listed','http://site.test/map.xml',NULL,0.69999999999999995559);
CREATE TABLE streams (
        path TEXT PRIMARY KEY, length INTEGER, tail BLOB, behind INTEGER, closed INTEGER
    ) WITHOUT ROWID;
INSERT INTO streams VALUES('out.jsonl',2590,X'8096950780e0238917f67283113f1273965c771f',0,1);
CREATE VIEW pages AS SELECT
        urls.walk, urls.walk = (SELECT max(walk) FROM walks) AS newest, urls.number, urls.url, status, content_type, charset, title, size, fetched, seconds, page_.tries,
        depth, referrer, canonical, robots, duplicate_of, flaws, links_beyond, refused, etag,
        last_modified, digest, same_as
    FROM page_ JOIN urls USING (number);
CREATE VIEW links AS SELECT
        urls.walk, urls.walk = (SELECT max(walk) FROM walks) AS newest, urls.url AS page,
        CASE each.type WHEN 'array' THEN json_extract(each.value, '$[0]') ELSE each.value END
            AS url,
        CASE each.type WHEN 'array' THEN json_extract(each.value, '$[1][0]') END AS kind,
        CASE each.type WHEN 'array' THEN json_extract(each.value, '$[1][1]') END AS text,
        NULL AS refused
    FROM links_ JOIN urls USING (number), json_each(links_.links) AS each
    UNION ALL SELECT
        urls.walk, urls.walk = (SELECT max(walk) FROM walks) AS newest, urls.url, json_extract(each.value, '$[0]'), json_extract(each.value, '$[2][0]'),
        json_extract(each.value, '$[2][1]'), json_extract(each.value, '$[1]')
    FROM links_ JOIN urls USING (number), json_each(links_.refused) AS each;
CREATE VIEW redirects AS SELECT
        urls.walk, urls.walk = (SELECT max(walk) FROM walks) AS newest, urls.number, urls.url, status, target, refused, fetched, seconds, redirect_.tries, depth, referrer
    FROM redirect_ JOIN urls USING (number);
CREATE VIEW failures AS SELECT
        urls.walk, urls.walk = (SELECT max(walk) FROM walks) AS newest, urls.number, urls.url, reason, detail, phase, target, fetched, seconds, failure_.tries, depth, referrer
    FROM failure_ JOIN urls USING (number);
CREATE VIEW skipped AS SELECT urls.walk, urls.walk = (SELECT max(walk) FROM walks) AS newest, urls.number, urls.url, reason, depth, referrer FROM skip_ JOIN urls USING (number);
CREATE VIEW waiting AS SELECT urls.walk, urls.walk = (SELECT max(walk) FROM walks) AS newest, urls.number, urls.url, tries, depth, referrer FROM urls WHERE NOT ended AND purpose = 'page';
COMMIT;
